"""The one scroll against the package's models and against PyTorch's, with the same weights."""

from pathlib import Path

import pytest
import torch
from nbformat import NO_CONVERT, read
from torch import nn

from tests.torch_twins import model_twin, randomised
from ttutor import minimal
from ttutor.masks import padding_mask
from ttutor.transformer import Transformer, TransformerConfig
from ttutor.variants.gpt import GPT, GPTConfig

SIZES = {"vocab_size": 23, "d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 20, "dropout": 0.1}
SOURCE = torch.tensor([[5, 6, 7, 8, 9, 3, 0], [4, 5, 6, 3, 0, 0, 0]])
TARGET = torch.tensor([[2, 10, 11, 12, 13], [2, 14, 15, 0, 0]])
REAL = TARGET != minimal.PADDING
EITHER_NORM = pytest.mark.parametrize("norm", ["post", "pre"])


def package_model(norm: str) -> Transformer:
    return randomised(Transformer(TransformerConfig(**SIZES, norm=norm)))


def with_weights_of(theirs: nn.Module, model: nn.Module) -> nn.Module:
    """The model with the weights of one of the package, whose names differ in three places."""
    weights = {}
    for name, tensor in theirs.state_dict().items():
        name = name.replace("source_embeddings.", "embeddings.").replace("embeddings.token.table", "embeddings.table")
        weights[name.replace("around_attention", "around_self_attention")] = tensor
    own = model.state_dict()
    model.load_state_dict({name: weights.get(name, own[name]) for name in own}, strict=True)
    assert set(own) - set(weights) <= {"to_class.weight", "to_class.bias"}
    return model.double().eval()


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")  # torch remarks on its own fast path
@EITHER_NORM
def test_the_whole_model_equals_the_package_s_and_torch_s(norm: str) -> None:
    theirs = package_model(norm)
    ours = with_weights_of(theirs, minimal.Transformer(minimal.Size(**SIZES, pre_norm=norm == "pre")))
    logits = ours(SOURCE, TARGET)[REAL]
    torch.testing.assert_close(logits, theirs(SOURCE, TARGET)[REAL], rtol=0, atol=1e-6)
    hidden = model_twin(theirs)(
        theirs.source_embeddings(SOURCE),
        theirs.target_embeddings(TARGET),
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(5).isinf(),
        src_key_padding_mask=SOURCE == minimal.PADDING,
        tgt_key_padding_mask=~REAL,
        memory_key_padding_mask=SOURCE == minimal.PADDING,
    )
    torch.testing.assert_close(logits, theirs.project(hidden)[REAL], rtol=0, atol=1e-6)


@EITHER_NORM
def test_the_classifier_reads_the_package_s_encoder(norm: str) -> None:
    theirs = package_model(norm)
    size = minimal.Size(**SIZES, pre_norm=norm == "pre")
    ours = with_weights_of(theirs, minimal.Classifier(size, n_classes=4))
    expected = ours.to_class(theirs.encode(SOURCE)[:, 0])
    torch.testing.assert_close(ours(SOURCE), expected, rtol=0, atol=1e-6)


def test_the_decoder_alone_equals_the_package_s_gpt() -> None:
    theirs = randomised(GPT(GPTConfig(**SIZES, max_len=16, positions="sinusoidal", activation="relu")))
    theirs.embeddings.token.factor = 12**0.5  # the scroll keeps the paper's factor in every model
    ours = with_weights_of(theirs, minimal.GPT(minimal.Size(**SIZES, pre_norm=True)))
    torch.testing.assert_close(ours(TARGET)[REAL], theirs(TARGET)[REAL], rtol=0, atol=1e-6)


def test_the_masks_are_those_of_the_package() -> None:
    assert torch.equal(minimal.may_look_at(SOURCE), padding_mask(SOURCE, minimal.PADDING))
    back = minimal.may_look_back(TARGET)
    assert back.shape == (2, 1, 5, 5)
    assert back[1, 0].tolist()[4] == [True, True, True, False, False]
    assert not back[0, 0].triu(1).any()


def test_the_page_shows_the_module_line_by_line() -> None:
    page = read(Path("book/minimal.ipynb"), as_version=NO_CONVERT)
    shown = [cell.source for cell in page.cells if "listing" in cell.metadata.get("tags", [])]
    source = Path(minimal.__file__).read_text(encoding="utf-8")
    head, _, listing = source.partition('"""\n\nimport')
    assert head.startswith('"""The whole Transformer in one scroll')
    assert "\n\n\n".join(shown) + "\n" == "import" + listing
    assert len(source.splitlines()) <= 250
