"""Exported translators: other programs write what ours writes, and what is wrong is said."""

import contextlib
import errno
import io
import json
import os
import pickle
import re
import shutil
import sys
from dataclasses import asdict, replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ttutor.corpora.corpus import embedded_corpus, read_lines
from ttutor.corpora.text_style import TextStyle
from ttutor.errors import FileError, RunError, SettingError, TtutorError
from ttutor.tokenization import EOS_ID
from ttutor.tokenization.subword import SubwordTokenizer
from ttutor.transformer import Transformer, TransformerConfig
from ttutor.translation.evaluation import evaluate
from ttutor.translation.export import FORMS, export_translator, load_exported
from ttutor.translation.export.folder import portable_tokenizer
from ttutor.translation.packed import load_default
from ttutor.translation.translator import Translator

pytestmark = pytest.mark.trainer
# PyTorch follows a graph with symbols for numbers, and annotations of shapes know no symbols.
traced = pytest.mark.usefixtures("as_readers_run_it")
CORPUS = embedded_corpus(0, {"train": 30, "validation": 5, "test": 5})
SENTENCES = [source for source, _ in CORPUS.train] + ["", "The dog  sleeps."]
KINDS = [("huggingface", None), ("ctranslate2", None), ("ctranslate2", "int8"), ("onnx", None), ("onnx", "int8")]


@pytest.fixture(scope="module")
def translator(learned):
    return Translator.load(learned.folder.path)


@pytest.fixture(scope="module")
def exported(translator, tmp_path_factory):
    """The folder of each kind of export, written once."""
    folders = {}

    def get(to, quantization=None):
        if (to, quantization) not in folders:
            folder = tmp_path_factory.mktemp("exported") / f"{to}-{quantization}"
            with pytest.MonkeyPatch.context() as patch:
                if (to, quantization) == ("onnx", "int8"):  # PyTorch's exporter takes long: its graphs are made once
                    there = get("onnx")
                    copied = lambda *given: shutil.copy(there / given[-1].name, given[-1])  # noqa: E731
                    patch.setattr("ttutor.translation.export.onnx._write_graph", copied)
                folders[to, quantization] = export_translator(translator, folder, to, quantization=quantization)
        return folders[to, quantization]

    return get


@traced
@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize(("to", "quantization"), KINDS)
def test_another_program_writes_the_same_sentences(translator, exported, to, quantization, beam_size):
    theirs = load_exported(exported(to, quantization), threads=1)
    found = theirs.translate(SENTENCES, beam_size=beam_size)
    expected = translator.translate(SENTENCES, beam_size=beam_size)
    assert [one.source for one in found] == SENTENCES
    same = [mine.text == other.text for mine, other in zip(expected, found, strict=True)]
    if quantization is None:
        assert all(same)
        scores = [[one.score for one in answers] for answers in (expected, found)]
        torch.testing.assert_close(*map(torch.tensor, scores), rtol=0, atol=0.001)
        seconds = [[text for text, _ in one.alternatives[:1]] for one in found]
        assert seconds == [[text for text, _ in one.alternatives[:1]] for one in expected]
    else:
        assert sum(same) >= 0.9 * len(same)


@traced
@pytest.mark.parametrize("to", FORMS)
def test_the_card_says_how_to_use_it_and_that_works(translator, exported, to, monkeypatch):
    folder = exported(to)
    (code,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    sentence = SENTENCES[0]
    monkeypatch.chdir(folder.parent)
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        exec(code.replace("A sentence.", sentence), {})
    beam_size = 1 if to == "onnx" else 5
    assert translator(sentence, beam_size=beam_size).text in shown.getvalue()


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0<>")), st.booleans(), st.booleans())
def test_the_tokenizer_prepares_a_text_as_ours_does(text, lower_case, final_mark):
    tokenizer = SubwordTokenizer.train(["the red car", "la voiture rouge", "l'oiseau", "I run"], vocab_size=280)
    text = " ".join(text.split())  # what counts as a blank is Python's list here, Unicode's there
    text = text if text.lower() == text.casefold() else text.lower()  # as the cases of a few letters are
    style = TextStyle(lower_case=lower_case, final_mark=final_mark)
    prepared = style.prepare(text)
    ids = portable_tokenizer(tokenizer, style).encode(text).ids
    assert ids == ([*tokenizer.encode(prepared), EOS_ID] if prepared else [EOS_ID])
    assert portable_tokenizer(tokenizer, style).decode(ids) == prepared


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("to", ["huggingface", "ctranslate2"])
def test_both_places_of_the_norm_are_carried_over(translator, to, norm, tmp_path):
    torch.manual_seed(3)
    sizes = {"vocab_size": translator.tokenizer.vocab_size, "d_model": 16, "n_heads": 2, "n_layers": 2, "max_len": 12}
    mine = Translator(Transformer(TransformerConfig(**sizes, norm=norm)), translator.tokenizer)
    theirs = load_exported(export_translator(mine, tmp_path / "model", to), threads=1)
    for one, other in zip(mine.translate(SENTENCES), theirs.translate(SENTENCES), strict=True):
        assert one.text == other.text
        assert one.score == pytest.approx(other.score, rel=2e-3)
        assert one.is_cut == other.is_cut


WRONG = {
    "no such form": (("x", "marian"), {}, "one of huggingface, ctranslate2, onnx, got 'marian'"),
    "no eight bits there": (("x", "huggingface"), {"quantization": "int8"}, "these quantizations: none; got 'int8'"),
    "no such bits": (("x", "onnx"), {"quantization": "int3"}, "these quantizations: int8; got 'int3'"),
    "the folder is taken": (("taken", "ctranslate2"), {}, "is there already"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_written_is_said_and_nothing_is_left(translator, case, tmp_path):
    (name, to), options, message = WRONG[case]
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine.txt").write_text("mine")
    with pytest.raises(TtutorError, match=message):
        export_translator(translator, tmp_path / name, to, **options)
    assert [path.name for path in tmp_path.rglob("*")] == ["taken", "mine.txt"]


def test_a_model_that_they_do_not_have_is_refused_and_nothing_is_left(translator, tmp_path):
    sizes = {"vocab_size": translator.tokenizer.vocab_size, "d_model": 16, "n_heads": 2, "n_layers": 1}
    learned = Translator(Transformer(TransformerConfig(**sizes, positions="learned")), translator.tokenizer)
    with pytest.raises(SettingError, match="positions='learned'"):
        export_translator(learned, tmp_path / "model", "huggingface")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("to", ["huggingface", "ctranslate2"])
def test_a_full_disk_is_said_and_nothing_is_left(translator, to, tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("ttutor.files.os.fsync", full)
    with pytest.raises(FileError, match=r"cannot write .*model.safetensors: No space left on device; make room"):
        export_translator(translator, tmp_path / "model", to)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_program_is_named_with_its_command(translator, exported, tmp_path, monkeypatch):
    folder = exported("ctranslate2")
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(RunError, match=r"ctranslate2 does not load .* pip install \"ttutor\[serve\]\""):
        load_exported(folder)


DAMAGED = {
    "no folder of ours": (None, "holds no exported model"),
    "half a file": ("{", "is damaged"),
    "of another version": ('{"format": "ttutor-export-9"}', "has the format 'ttutor-export-9'"),
    "no JSON object": ("[]", "is damaged"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_folder_that_cannot_be_read_is_one_message(case, tmp_path):
    text, message = DAMAGED[case]
    if text is not None:
        (tmp_path / "ttutor.json").write_text(text)
    with pytest.raises(FileError, match=message):
        load_exported(tmp_path)


HURT = {
    "halved": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "emptied": lambda path: path.write_bytes(b""),
    "one bit": lambda path: path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:]),
    "a list": lambda path: path.write_bytes(b"[]"),
    "nested": lambda path: path.write_bytes(b"[" * 50_000),
    "a pickle": lambda path: path.write_bytes(pickle.dumps({"a": 1})),
    "missing": lambda path: path.unlink(),
}


@traced
@pytest.mark.parametrize("to", FORMS)
def test_every_file_of_an_export_is_missed_or_found_damaged(exported, to, tmp_path):
    folder = exported(to)
    names = {path.name for path in folder.iterdir()} - {"README.md"}
    assert len(names) >= 3
    for name in names:
        for hurt in HURT.values():
            shutil.rmtree(tmp_path / "hurt", ignore_errors=True)
            shutil.copytree(folder, tmp_path / "hurt")
            hurt(tmp_path / "hurt" / name)
            with pytest.raises(FileError, match=f"hurt(/{re.escape(name)})? .*`ttutor export`"):
                load_exported(tmp_path / "hurt")


def test_what_another_program_cannot_read_is_one_message(exported, tmp_path, monkeypatch):
    def refuse(*_):
        raise RuntimeError("unsupported version\nand a trace")

    monkeypatch.setitem(FORMS, "ctranslate2", replace(FORMS["ctranslate2"], engine=refuse))
    with pytest.raises(FileError, match="ctranslate2 reads .RuntimeError: unsupported version\\); remove"):
        load_exported(exported("ctranslate2"))


def test_export_then_translate_by_commands(ttutor, learned, translator, tmp_path):
    run, sentence = learned.folder.path, SENTENCES[0]
    shown = ttutor("export", run, "--to", "ctranslate2", "--out", "mine")
    assert 'ttutor translate --run mine "A sentence."' in shown.stdout
    expected = translator(sentence).text + "\n"
    assert ttutor("translate", "--run", "mine", sentence).stdout == expected
    assert ttutor("translate", "--run", run, "--engine", "ctranslate2", sentence).stdout == expected
    card = (tmp_path / "mine" / "README.md").read_text(encoding="utf-8")
    assert "| learned from | embedded |" in card
    assert json.loads((tmp_path / "mine" / "ttutor.json").read_text())["style"] == asdict(translator.style)
    for arguments, message in (
        (("export", run, "--out", "mine"), "is there already"),
        (("translate", "--run", "mine", "--alignment", "x"), "needs the package's own search"),
        (("translate", "--run", "mine", "--precision", "bf16", "x"), "its number format already"),
        (("translate", "--run", "mine", "--threads", "2", "x"), "chooses its threads itself"),
        (("translate", "--run", "mine", "--engine", "onnx", "x"), "is an exported model already"),
        (("translate", "--run", run, "--engine", "marian", "x"), "must be one of huggingface"),
    ):
        assert message in " ".join(ttutor(*arguments, code=2).output.split())


@traced
@pytest.mark.soak
@pytest.mark.parametrize(("to", "quantization"), KINDS)
def test_the_translator_that_ships_keeps_its_words_and_its_score(multi30k, to, quantization, tmp_path):
    translator = load_default()
    sources, references = (read_lines(multi30k / f"test_2016_flickr.{name}.gz") for name in ("en", "de"))
    theirs = load_exported(export_translator(translator, tmp_path / "model", to, quantization=quantization))
    expected, found = translator.translate(sources), theirs.translate(sources)
    scores = [evaluate([one.text for one in answers], references, language="de").bleu for answers in (expected, found)]
    changed = [
        f"{one.source}\n  {one.score:.4f} {one.text}\n  {other.score:.4f} {other.text}"
        for one, other in zip(expected, found, strict=True)
        if one.text != other.text
    ]
    print(f"{to} {quantization}: {len(changed)} of {len(sources)} differ, BLEU {scores}", *changed[:20], sep="\n")
    if quantization is None:
        assert len(changed) <= 0.005 * len(sources)
        assert scores[1] == pytest.approx(scores[0], abs=0.1)
    else:
        assert scores[1] == pytest.approx(scores[0], abs=0.4)
