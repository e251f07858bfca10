"""What the experiments of chapters 3, 6 and 9 run is what their pages show, word for word."""

import ast

import pytest

from book._tools.notebook_io import ROOT, code_cells, read

SHOWN = {
    "decoder_drafts": ("06-decoder-deeper", {"drawn", "one_pass", "speculate"}),
    "decoder_known": ("06-decoder", {"Layer", "Writer", "attention", "loss_of", "train"}),
    "multihead_readers": ("03-multihead", {"LastFour", "BetterReader", "last_four", "letters_loss", "train"}),
    "multihead_translator": ("03-multihead-deeper", {"SmallTranslator"}),
    "variants_pretrained": ("09-variants-today", {"rms", "silu", "llama_block", "weights_of", "run_by_hand"}),
    "vit_clip": ("10-vit", {"captions", "in_colour", "small_clip"}),
    "vit_order": ("10-vit", {"PlainViT", "small_cnn", "train", "without_positions", "aside"}),
}
"""By experiment: the page, and the names that are defined on both."""


def definitions(source: str, names: set[str]) -> dict[str, str]:
    """The syntax trees of classes and functions."""
    nodes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    return {node.name: ast.dump(node) for node in nodes if node.name in names}


@pytest.mark.parametrize("experiment", sorted(SHOWN))
def test_the_experiment_trains_what_the_page_shows(experiment: str) -> None:
    page, names = SHOWN[experiment]
    notebook = read((ROOT / "book" / f"{page}.ipynb").read_text(encoding="utf-8"))
    on_page = definitions("\n".join(cell.source for cell in code_cells(notebook)), names)
    trained = definitions((ROOT / "experiments" / f"{experiment}.py").read_text(encoding="utf-8"), names)
    assert set(on_page) == set(trained) == names
    assert on_page == trained
