"""Data sets come whole and as published, or not at all."""

import gc
import gzip
import hashlib
import sys
import threading
import time
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random

import pytest

from ttutor.corpora import datasets
from ttutor.corpora.datasets import MULTI30K, DataSet, data_root, find_dataset
from ttutor.corpora.fetch import fetch_dataset
from ttutor.errors import FileError, InputError

# Pooch leaves the connection of a failed attempt to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
ROOT = Path(__file__).resolve().parents[2]
BODIES = {
    f"{split}.{language}.gz": gzip.compress(Random(f"{split} {language}").randbytes(size), mtime=0)
    for split, size in {"learn": 40_000, "check": 700}.items()
    for language in ("en", "de")
}
ONE, SMALL = "learn.en.gz", "check.de.gz"
LITTLE = DataSet(
    name="little",
    languages=("en", "de"),
    splits={"train": "learn.{language}.gz", "validation": "check.{language}.gz"},
    files={name: hashlib.sha256(body).hexdigest() for name, body in BODIES.items()},
    base_url="http://127.0.0.1:9/unset",
    papers={"nobody2026": "Nobody 2026"},
    terms="Made up, free for every use.",
)


class Handler(BaseHTTPRequestHandler):
    """Answers as the server's list for a file says: with a status, or with so many bytes of what it holds."""

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        self.server.asked.append(name)
        planned, body = self.server.planned[name], self.server.bodies[name]
        status, n_bytes = planned.pop(0) if planned else (200, None)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:n_bytes])

    def log_message(self, *_) -> None:
        pass


@pytest.fixture
def server():
    """A server on this machine that holds the little data set."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked, server.planned, server.bodies = [], defaultdict(list), dict(BODIES)
    server.url = f"http://127.0.0.1:{server.server_port}/files"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    gc.collect()


@pytest.fixture(autouse=True)
def _at_home(monkeypatch, tmp_path):
    """No proxy, no data folder of this machine, and no pauses between attempts."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("TTUTOR_DATA", str(tmp_path / "unused"))
    monkeypatch.setattr(time, "sleep", lambda seconds: None)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "little"


@pytest.fixture
def fetch(server, folder):
    """Fetch the little data set into a folder; returns the names of what came."""
    return lambda pairs=(), **options: fetch_dataset(LITTLE, folder, pairs, **{"base_url": server.url} | options)


def assert_whole(folder: Path) -> None:
    """Every file is the published one, and nothing else is left."""
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == BODIES


def test_all_files_come_and_only_what_is_missing_is_fetched_again(fetch, server, folder):
    assert fetch() == list(BODIES)
    assert_whole(folder)
    (folder / SMALL).unlink()
    server.asked.clear()
    assert fetch() == [SMALL] == server.asked
    assert fetch() == []
    assert server.asked == [SMALL]
    assert_whole(folder)


def test_only_the_languages_that_are_asked_for_are_fetched(fetch, server):
    three = DataSet(**(vars(LITTLE) | {"languages": ("en", "de", "fr")}))
    assert three.files_of(["de-fr"]) == ["learn.de.gz", "check.de.gz"]
    assert MULTI30K.files_of(["en-de", "de-en"]) == [
        f"{split}.{language}.gz" for split in ("test_2016_flickr", "train", "val") for language in ("de", "en")
    ]
    assert len(MULTI30K.files_of(["en-de", "en-fr"])) == len(MULTI30K.files_of()) == 9
    with pytest.raises(InputError, match="little has no languages 'en-es'; expected .*: en-de, de-en"):
        fetch(["en-es"])
    assert server.asked == []


@pytest.mark.parametrize("failures", [[(500, 0)], [(200, 9_000)], [(429, 0), (200, 0)]], ids=str)
def test_what_may_pass_is_tried_again(fetch, server, folder, failures):
    server.planned[ONE] = list(failures)
    assert ONE in fetch()
    assert server.asked.count(ONE) == len(failures) + 1
    assert_whole(folder)


@pytest.mark.parametrize(
    ("failure", "message"),
    [((404, 0), "404 .*give another address by --from"), ((200, 500), "IncompleteRead|does not match the known hash")],
)
def test_what_does_not_pass_is_one_message_and_no_file(fetch, server, folder, failure, message):
    server.planned[ONE] = 5 * [failure]
    with pytest.raises(FileError, match=rf"learn.en.gz cannot be fetched: .*{message}"):
        fetch()
    assert server.asked == 5 * [ONE]
    assert list(folder.iterdir()) == []
    fetch()
    assert_whole(folder)


def test_another_file_than_the_published_one_is_refused(fetch, server, folder):
    server.bodies[ONE] = bytes(len(BODIES[ONE]))
    with pytest.raises(FileError, match="does not match the known hash"):
        fetch()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "https://published.invalid/files", "files", "http://[/x"])
def test_without_a_connection_the_message_says_what_to_do(fetch, folder, address):
    with pytest.raises(FileError, match=r"cannot be fetched: .*Check that this machine is online .*--from, or copy"):
        fetch(base_url=address)
    assert list(folder.iterdir()) == []


def test_a_file_of_the_user_is_named_and_replaced_only_with_leave(fetch, server, folder):
    folder.mkdir()
    (folder / ONE).write_bytes(b"mine")
    (folder / SMALL).write_bytes(bytes(len(BODIES[SMALL])))
    with pytest.raises(FileError, match="learn.en.gz is damaged: its SHA-256 is .*; check.de.gz is damaged"):
        fetch()
    assert server.asked == []
    server.planned[ONE] = 5 * [(404, 0)]
    with pytest.raises(FileError, match="404"):
        fetch(overwrite=True)
    assert (folder / ONE).read_bytes() == b"mine"
    assert fetch(overwrite=True) == list(BODIES)
    assert_whole(folder)


@pytest.fixture
def ttutor(server, monkeypatch, ttutor):
    """Run a command that knows the little data set."""
    monkeypatch.setitem(datasets.DATASETS, "little", DataSet(**(vars(LITTLE) | {"base_url": server.url})))
    return ttutor


def test_the_command_tells_what_came_and_what_was_there(ttutor, folder):
    told = ttutor("fetch", "little", "--data-dir", ".").output
    assert told.splitlines()[0] == "learn.en.gz: fetched"
    assert f"little is in {folder.name}. Made up, free for every use." in told
    assert "Please cite: Nobody 2026." in told
    assert_whole(folder)
    (folder / SMALL).unlink()
    told = ttutor("fetch", "little", "--data-dir", ".", "--languages", "en-de", "--languages", "de-en").output
    assert told.count("was already there") == 3
    assert ttutor("fetch", "little", "--data-dir", ".", "--quiet").output == ""
    (folder / SMALL).write_bytes(b"mine")
    assert "replace them by --overwrite" in ttutor("fetch", "little", "--data-dir", ".", code=2).output
    told = ttutor("fetch", "little", "--data-dir", ".", "--overwrite").output
    assert f"{SMALL}: fetched" in told
    assert_whole(folder)


def test_ctrl_c_says_how_to_go_on(ttutor, server, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("pooch.HTTPDownloader.__call__", interrupt)
    errors = ttutor("fetch", "little", "--from", server.url, code=130).stderr
    assert "the files that came whole are kept. The same command goes on." in errors


def test_wrong_use_is_one_message_and_code_2(ttutor, server):
    assert "no data set 'large'; known are: multi30k, little" in ttutor("fetch", "large", code=2).output
    assert "little has no languages 'en'" in ttutor("fetch", "little", "--languages", "en", code=2).output
    server.planned[ONE] = 5 * [(404, 0)]
    assert "Error: http://127.0.0.1:" in ttutor("fetch", "little", code=2).stderr


def test_a_data_set_is_looked_for_where_it_is_said_to_be(monkeypatch, tmp_path):
    assert data_root("here") == Path("here")
    assert data_root() == tmp_path / "unused"
    assert data_root("~/here") == Path.home() / "here"
    monkeypatch.setenv("TTUTOR_DATA", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "mine"))
    if sys.platform == "linux":
        assert data_root() == tmp_path / "mine" / "ttutor"
    assert data_root().name == "ttutor"


def test_a_data_set_that_is_there_is_found(fetch, folder):
    fetch()
    assert find_dataset(LITTLE, "de-en", data_dir=folder.parent) == {
        "train": (folder / "learn.de.gz", folder / "learn.en.gz"),
        "validation": (folder / "check.de.gz", folder / "check.en.gz"),
    }


def test_a_data_set_that_is_not_whole_says_what_to_do(fetch, folder):
    with pytest.raises(InputError) as caught:
        find_dataset("multi30k", "en-fr", data_dir=folder.parent)
    told = str(caught.value)
    assert f"multi30k is not whole in {folder.parent / 'multi30k'}: it lacks test_2016_flickr.en.gz" in told
    assert f"`ttutor fetch multi30k --data-dir {folder.parent}`" in told
    assert "copy these files there from https://raw.githubusercontent.com/multi30k/dataset/" in told
    assert ".de.gz" not in told
    fetch()
    (folder / SMALL).write_bytes(bytes(len(BODIES[SMALL])))
    with pytest.raises(InputError, match=r"not whole .*: check.de.gz is damaged: its SHA-256 is .* --overwrite`"):
        find_dataset(LITTLE, "en-de", data_dir=folder.parent)
    with pytest.raises(InputError, match="there is no data set 'large'"):
        find_dataset("large", "en-de")
    with pytest.raises(InputError, match="'en-en'"):
        find_dataset(LITTLE, "en-en")


def test_the_papers_stand_in_the_bibliography():
    bibliography = (ROOT / "book" / "references.bib").read_text(encoding="utf-8")
    for key, paper in MULTI30K.papers.items():
        entry = bibliography.partition(f"{{{key},")[2].partition("\n}")[0]
        assert paper.rpartition("arXiv:")[2] in entry
