"""The text of a training: files, a data set by its name, or the grammar; a run remembers which."""

import gzip
import hashlib
import shutil
from pathlib import Path

import pytest

from tests.training.tiny import tiny_toml
from ttutor.corpora.datasets import DATASETS, DataSet
from ttutor.errors import InputError, SettingError
from ttutor.training.recipe import TrainingRecipe
from ttutor.training.run_folder import RunFolder
from ttutor.translation.training_text import files_for, read_corpus, recipe_for

LANGUAGES = {"en": "sentence", "de": "Satz", "fr": "phrase"}
LINES = {"train": 60, "val": 8, "test": 5}
TINY = tiny_toml(corpus="tiny", languages="en-de", steps=4, validate_every=2, checkpoint_every=2)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A data set `tiny` in three languages, whole, in the folder that is returned; nothing else is found."""
    folder = tmp_path / "data" / "tiny"
    folder.mkdir(parents=True)
    files = {}
    for split, count in LINES.items():
        for language, word in LANGUAGES.items():
            packed = gzip.compress("".join(f"{split} {word} {n}.\n" for n in range(count)).encode(), mtime=0)
            (folder / f"{split}.{language}.gz").write_bytes(packed)
            files[f"{split}.{language}.gz"] = hashlib.sha256(packed).hexdigest()
    tiny = DataSet(
        name="tiny",
        languages=tuple(LANGUAGES),
        splits={"train": "train.{language}.gz", "validation": "val.{language}.gz", "test": "test.{language}.gz"},
        files=files,
        base_url="http://127.0.0.1:9/tiny",
        papers={},
        terms="Made up.",
    )
    monkeypatch.setitem(DATASETS, "tiny", tiny)
    monkeypatch.delenv("TTUTOR_DATA", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "nothing"))
    return folder.parent


@pytest.fixture
def train(ttutor):
    """What `ttutor train` says in a folder that holds tiny.toml, and a.en and a.fr of thirty lines."""
    Path("tiny.toml").write_text(TINY)
    for name in ("a.en", "a.fr"):
        Path(name).write_text("".join(f"Line {number}.\n" for number in range(30)))
    return lambda *arguments, **options: " ".join(ttutor("train", *arguments, **options).output.split())


def test_the_files_of_a_data_set_are_found_by_its_name(data):
    recipe = TrainingRecipe(name="x", corpus="tiny", languages="fr-en", steps=1)
    files = files_for(recipe, {}, data)
    names = {"source": "train.fr.gz", "target": "train.en.gz"}
    names |= {"validation_source": "val.fr.gz", "validation_target": "val.en.gz"}
    assert files == {option: str(data / "tiny" / name) for option, name in names.items()}
    corpus = read_corpus(files, seed=0)
    assert (len(corpus.train), len(corpus.validation)) == (60, 8)
    assert corpus.train[3] == ("train phrase 3.", "train sentence 3.")


def test_files_of_the_user_win_over_the_data_set(data):
    given = {"source": Path("a.en"), "target": Path("a.fr"), "validation_source": None, "validation_target": None}
    recipe = recipe_for(TrainingRecipe(name="x", corpus="tiny", languages="en-de", steps=1), given)
    assert (recipe.corpus, recipe.languages) == ("files", None)
    assert files_for(recipe, given)["source"] == str(Path("a.en").absolute())


@pytest.mark.parametrize(
    ("corpus", "languages", "data_dir", "error", "message"),
    [
        (
            "embedded",
            "en-fr",
            None,
            SettingError,
            "only a data set takes --languages, and this training is on the embedded",
        ),
        ("embedded", None, Path("x"), SettingError, "only a data set takes --data-dir"),
        ("files", "en-fr", None, SettingError, "this training is on files"),
        ("files", None, None, InputError, "learns from files: give --source and --target"),
        (
            "tiny",
            None,
            None,
            SettingError,
            "tiny has several languages: choose two by --languages, out of en-de, en-fr",
        ),
        ("tiny", "en-it", None, InputError, "tiny has no languages 'en-it'"),
        ("tiny", "en-de", None, InputError, "ttutor fetch tiny"),
        ("wmt", "en-de", None, InputError, "no data set 'wmt'"),
        ("wmt", None, None, InputError, "no data set 'wmt'"),
    ],
)
def test_what_is_no_text_is_named(data, as_readers_run_it, corpus, languages, data_dir, error, message):
    recipe = TrainingRecipe(name="x", corpus=corpus, languages=languages, steps=1)
    with pytest.raises(error, match=message):
        files_for(recipe, {}, data_dir)


@pytest.mark.trainer
def test_a_run_on_a_data_set_goes_on_by_its_folder_alone(data, train):
    told = train("--recipe", "tiny.toml", "--data-dir", data)
    assert "60 pairs to train on" in told
    folder = RunFolder("ttutor-runs/tiny")
    assert (folder.recipe().corpus, folder.recipe().languages) == ("tiny", "en-de")
    assert folder.facts().files["validation_target"] == str(data / "tiny" / "val.de.gz")
    assert "Resumed after step 4" in train("--resume", "--out", folder.path)
    assert "Resumed after step 4" in train("--resume", "--recipe", "tiny.toml", "--data-dir", data)
    other = ("--resume", "--out", folder.path, "--languages", "en-fr")
    assert "differ from --languages; leave" in train(*other, code=2)


@pytest.mark.trainer
def test_a_data_set_that_moved_is_found_again(data, train, tmp_path):
    train("--recipe", "tiny.toml", "--data-dir", data, "--quiet")
    shutil.move(data, tmp_path / "elsewhere")
    resume = ("--resume", "--out", "ttutor-runs/tiny")
    assert "there is no file" in train(*resume, code=2)
    assert "Resumed after step 4" in train(*resume, "--data-dir", tmp_path / "elsewhere")


def test_a_data_set_that_is_not_there_leaves_no_folder_and_says_how_to_get_it(data, train):
    assert "ttutor fetch tiny" in train("--recipe", "tiny.toml", code=2)
    assert "without a connection copy" in train("--recipe", "tiny.toml", code=2)
    (data / "tiny" / "val.de.gz").write_bytes(b"")
    assert "val.de.gz is damaged" in train("--recipe", "tiny.toml", "--data-dir", data, code=2)
    assert not Path("ttutor-runs").exists()


def test_the_preset_takes_the_published_files(multi30k, tmp_path):
    recipe = TrainingRecipe.preset("multi30k-tiny").replace(languages="en-fr")
    corpus = read_corpus(files_for(recipe, {}, multi30k.parent), recipe.seed)
    assert (len(corpus.train), len(corpus.validation)) == (29_000, 1_014)
