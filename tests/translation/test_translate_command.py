"""`ttutor translate` and `ttutor evaluate`, what they read, write and show; their failures stand in test_commands."""

import gzip
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ttutor.corpora.corpus import embedded_corpus
from ttutor.training.run_folder import RunFolder
from ttutor.translation.evaluation import evaluate, sentence_chrf
from ttutor.translation.evaluation_text import evaluation_text
from ttutor.translation.translator import Translator

pytestmark = pytest.mark.trainer
ROOT = Path(__file__).resolve().parents[2]
CORPUS = embedded_corpus(0, {"train": 30, "validation": 5, "test": 5})
SENTENCES = [CORPUS.train[0][0], "", CORPUS.train[1][0], CORPUS.train[2][0]]


@pytest.fixture
def run(learned):
    """The folder of a model whose translations have words and an end."""
    return str(learned.folder.path)


@pytest.fixture
def ttutor(run, ttutor):
    """Run a command with the tiny model."""
    return lambda command, *arguments, **options: ttutor(command, "--run", run, "--beam", 2, *arguments, **options)


@pytest.fixture
def expected(run):
    answers = Translator.load(run).translate(SENTENCES, beam_size=2)
    assert all(answer.text for answer in answers if answer.source)
    return [answer.text for answer in answers]


def test_arguments_a_pipe_and_files_give_the_same(ttutor, expected):
    text = "".join(sentence + "\n" for sentence in SENTENCES)
    Path("in.txt").write_text(text)
    Path("in.txt.gz").write_bytes(gzip.compress(text.encode()))
    wanted = "".join(line + "\n" for line in expected)
    assert ttutor("translate", *SENTENCES).stdout == wanted
    assert ttutor("translate", input=text).stdout == wanted
    assert ttutor("translate", input=text.replace("\n", "\r\n")).stdout == wanted
    assert ttutor("translate", input=text.removesuffix("\n")).stdout == wanted
    for name in ("in.txt", "in.txt.gz"):
        assert ttutor("translate", "--input", name).stdout == wanted
        assert ttutor("translate", "--input", name, "--output", "out.txt").stdout == ""
        assert Path("out.txt").read_text(encoding="utf-8") == wanted
    ttutor("translate", *SENTENCES, "--output", "out.gz")
    assert gzip.decompress(Path("out.gz").read_bytes()).decode() == wanted
    assert sorted(path.name for path in Path().iterdir()) == ["in.txt", "in.txt.gz", "out.gz", "out.txt"]


def test_json_lines_hold_everything(ttutor, expected):
    lines = ttutor("translate", "--json", "--alignment", *SENTENCES).stdout.splitlines()
    answers = [json.loads(line) for line in lines]
    assert [answer["source"] for answer in answers] == SENTENCES
    assert [answer["translation"] for answer in answers] == expected
    assert [len(answer["alternatives"]) for answer in answers] == [1, 0, 1, 1]
    assert answers[1]["attention"] is None
    assert len(answers[0]["attention"]["weights"][0]) == len(answers[0]["attention"]["source_tokens"])
    (line,) = ttutor("translate", "--json", "--alternatives", "0", SENTENCES[0]).stdout.splitlines()
    assert (json.loads(line)["alternatives"], json.loads(line)["attention"]) == ([], None)


def test_the_alignment_stands_indented_below_its_translation(ttutor, expected, run):
    output = ttutor("translate", "--alignment", "--alternatives", "1", *SENTENCES, env={"COLUMNS": "200"}).stdout
    lines = output.removesuffix("\n").split("\n")
    assert [line for line in lines if not line.startswith("    ")] == expected
    attention = Translator.load(run)(SENTENCES[0], beam_size=2).attention
    assert lines[1:4] == [f"    {line}" for line in attention.lines(width=196)]
    assert len(lines) == 3 * 5 + 1  # one word line, three lines of alignment and one alternative; or an empty line


BAD = {
    "both": (("x", "--input", "in.txt"), "both as arguments and by --input"),
    "a folder": (("--input", "."), "cannot be read"),
    "not UTF-8": (("--input", "bytes.txt"), "bytes.txt is not UTF-8: line 2, byte 5"),
    "into a folder": (("x", "--output", "."), "is no file but a folder or a device"),
    "into nowhere": (("x", "--output", "no/out.txt"), "there is no folder"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_read_or_written_is_one_message(ttutor, case):
    arguments, message = BAD[case]
    Path("bytes.txt").write_bytes(b"good\nbad \xff\n")
    Path("old.txt").write_text("old")
    output = () if "--output" in arguments else ("--output", "old.txt")
    result = ttutor("translate", *arguments, *output, code=2)
    (error,) = [line for line in result.output.splitlines() if line.startswith("Error: ")]
    assert message in error
    assert Path("old.txt").read_text() == "old"


def _process(run: str, *arguments: str, **options) -> subprocess.Popen:
    command = [sys.executable, "-m", "ttutor.cli", "translate", "--run", run, "--beam", "1", *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)


def test_a_pipe_that_waits_for_its_answer_gets_it(run):
    """A program that writes one line and reads one, in turns, is never kept waiting for a group to fill."""
    with _process(run) as process:
        for sentence in SENTENCES:
            process.stdin.write(sentence.encode() + b"\n")
            process.stdin.flush()
            assert process.stdout.readline().endswith(b"\n")
        rest, _ = process.communicate(timeout=60)
    assert (rest, process.returncode) == (b"", 0)


def test_a_reader_who_leaves_early_is_no_failure(run):
    with _process(run, "--alignment", stderr=subprocess.PIPE) as process:
        process.stdin.write(b"the dog sleeps\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.stdout.close()
        try:
            process.stdin.write(b"the dog sleeps\n" * 3000)
            process.stdin.close()
        except BrokenPipeError:
            pass  # it has left already
        errors = process.stderr.read()
        assert process.wait(timeout=60) == 0
    assert b"Traceback" not in errors
    assert b"BrokenPipe" not in errors


@pytest.fixture
def files(run):
    """The test split of the tiny corpus, as two files; returns the options that name them, and the pairs."""

    def write():
        pairs = CORPUS.test
        Path("t.en").write_text("".join(one + "\n" for one, _ in pairs), encoding="utf-8")
        Path("t.fr").write_text("".join(other + "\n" for _, other in pairs), encoding="utf-8")
        return ("--source", "t.en", "--reference", "t.fr"), pairs

    return write


def test_evaluate_shows_the_worst_with_their_alignments(ttutor, files, run):
    options, pairs = files()
    body = json.loads(ttutor("evaluate", *options, "--worst", "4", "--output", "out.fr", "--json").stdout)
    translations = Path("out.fr").read_text(encoding="utf-8").splitlines()
    scores = sentence_chrf(translations, [other for _, other in pairs])
    assert [one["chrf"] for one in body["worst"]] == pytest.approx(sorted(scores)[:4])
    for one in body["worst"]:
        assert (one["source"], one["reference"]) == pairs[one["number"] - 1]
        assert one["translation"] == translations[one["number"] - 1]
        assert one["attention"]["source_tokens"][-1] == "<eos>"
    wanted = evaluate(translations, [other for _, other in pairs], body["n_cut"], language="fr").as_dict()
    assert {name: value for name, value in body.items() if name != "worst"} == wanted
    text = ttutor("evaluate", *options, "--worst", "2").stdout
    first = body["worst"][0]
    assert f"sentence {first['number']}: chrF {first['chrf']:.1f}" in text
    assert first["reference"] in text
    assert text.count("  source  ") == 2
    assert "The worst" not in ttutor("evaluate", *options, "--worst", "0").stdout


def test_the_language_is_the_files_or_the_one_named(ttutor, files):
    options, _ = files()
    assert "BLEU, spaced words, fr" in ttutor("evaluate", *options).stdout
    assert "BLEU, spaced words, de" in ttutor("evaluate", *options, "--language", "de").stdout


def test_a_run_on_a_data_set_is_scored_on_its_test_split(run, tmp_path, monkeypatch):
    """Found where the training files lie, unless another folder is named."""
    asked = []
    recipe, facts = RunFolder(run).recipe().replace(corpus="multi30k", languages="en-de"), RunFolder(run).facts()
    data = tmp_path / "data" / "multi30k"
    data.mkdir(parents=True)
    for name, line in {"train.en": "x", "t.en": "a dog", "t.de": "ein Hund"}.items():
        (data / name).write_text(line + "\n")

    def found(dataset, languages, data_dir):
        asked.append((dataset, languages, data_dir))
        return {"test": (data / "t.en", data / "t.de")}

    monkeypatch.setattr(RunFolder, "recipe", lambda self: recipe)
    monkeypatch.setattr(RunFolder, "facts", lambda self: replace(facts, files={"source": str(data / "train.en")}))
    monkeypatch.setattr("ttutor.translation.evaluation_text.find_dataset", found)
    text = evaluation_text(Path(run), None, None)
    assert (text.pairs, text.language) == ([("a dog", "ein Hund")], "de")
    evaluation_text(Path(run), None, None, tmp_path)
    assert asked == [("multi30k", "en-de", tmp_path / "data"), ("multi30k", "en-de", tmp_path)]


def test_the_number_format_of_the_search_can_be_chosen(ttutor, expected, files):
    lines = ttutor("translate", "--precision", "bf16", *SENTENCES).stdout.splitlines()
    assert len(lines) == len(expected)
    options, _ = files()
    for command in (["translate", "a"], ["evaluate", *options]):
        wrong = ttutor(*command, "--precision", "fp9", code=2)
        assert "precision must be auto, fp32 or bf16, got 'fp9'" in " ".join(wrong.output.split())
