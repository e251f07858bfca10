"""Data sets come whole and as published, or not at all, from a server that fails in every way."""

import errno
import gzip
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.corpora import faulty_server as faulty
from tests.corpora.faulty_server import BODIES, LITTLE, ONE, SMALL, FaultyServer
from ttutor import cli
from ttutor.corpora import datasets
from ttutor.corpora.datasets import MULTI30K, DataFile, data_root, find_dataset
from ttutor.corpora.download_bar import DownloadBar
from ttutor.corpora.downloading import Watcher
from ttutor.corpora.fetch import LOCK, PIECES, WORKSHOP, fetch_dataset
from ttutor.corpora.http_answers import CHUNK, Patience
from ttutor.errors import CorpusError, FetchError

ROOT = Path(__file__).resolve().parents[2]
CALM = Patience(connect=10.0, read=10.0, pauses=(0.0, 0.0))
HASTY = Patience(connect=10.0, read=0.4, pauses=(0.0, 0.0))
SIZE = f"{len(BODIES[ONE]):,}"
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


class Notes(Watcher):
    """Writes down what it is shown."""

    def __init__(self):
        self.told: list[str] = []
        self.counts: list[tuple[str, int]] = []

    def has(self, file, n_bytes):
        self.counts.append((file.name, n_bytes))

    def tell(self, message):
        self.told.append(message)


@pytest.fixture(autouse=True)
def _no_way_out(monkeypatch, tmp_path):
    """No proxy and no data folder of this machine; no name but this machine's own is ever looked up."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("TTUTOR_DATA", str(tmp_path / "unused"))
    look_up = socket.getaddrinfo

    def only_here(host, *rest, **more):
        if host != "127.0.0.1":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return look_up(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", only_here)


@pytest.fixture
def server():
    """A server that holds the little data set."""
    server = FaultyServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.released.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def notes():
    return Notes()


@pytest.fixture
def fetch(server, notes, tmp_path):
    """Fetch the little data set into a folder: `fetch(["en-de"], ...)`; returns the names of what came."""

    def run(pairs=(), **options) -> list[str]:
        options = {"base_url": server.url, "patience": CALM, "watcher": notes} | options
        return fetch_dataset(LITTLE, tmp_path / "little", pairs, **options)

    return run


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "little"


def assert_whole(folder: Path) -> None:
    """Every file is the published one, and nothing else is left but the empty lock."""
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == BODIES | {LOCK: b""}


def assert_nothing_under_its_name(folder: Path, name: str = ONE) -> None:
    assert not (folder / name).exists()
    assert not list((folder / WORKSHOP).glob("tmp*")), "pooch's temporary files"


def put_pieces(folder: Path, data: bytes, name: str = ONE) -> None:
    (folder / WORKSHOP).mkdir(parents=True, exist_ok=True)
    (folder / WORKSHOP / f"{name}{PIECES}").write_bytes(data)


def test_all_files_come_and_are_not_fetched_again(fetch, server, notes, folder):
    assert fetch() == list(BODIES)
    assert_whole(folder)
    assert notes.told == []
    assert {name: max(n for other, n in notes.counts if other == name) for name in BODIES} == {
        file.name: file.size for file in LITTLE.files
    }
    server.asked.clear()
    assert fetch() == []
    assert server.asked == []


def test_only_the_languages_that_are_asked_for_are_fetched(server, tmp_path):
    three = datasets.DataSet(**(vars(LITTLE) | {"languages": ("en", "de", "fr")}))
    assert [file.name for file in three.files_of(["de-fr"])] == ["learn.de.gz", "check.de.gz"]
    assert [file.name for file in MULTI30K.files_of(["en-de", "de-en"])] == [
        f"{split}.{language}.gz" for split in ("test_2016_flickr", "train", "val") for language in ("de", "en")
    ]
    assert len(MULTI30K.files_of(["en-de", "en-fr"])) == len(MULTI30K.files_of()) == 9
    with pytest.raises(CorpusError, match="little has no languages 'en-es'; expected .*: en-de, de-en"):
        fetch_dataset(LITTLE, tmp_path, ["en-es"], base_url=server.url)
    assert server.asked == []


def test_a_file_that_is_missing_is_fetched_and_the_others_left_alone(fetch, server, folder):
    fetch()
    (folder / SMALL).unlink()
    server.asked.clear()
    assert fetch() == [SMALL]
    assert server.asked == [(SMALL, None)]
    assert_whole(folder)


MENDED = {
    "500, then good": ([faulty.status(500), faulty.whole], [None, None]),
    "503 and 429, then good": ([faulty.status(503), faulty.status(429), faulty.whole], [None, None, None]),
    "hangs before its answer": ([faulty.silent, faulty.whole], [None, None]),
    "hangs in the middle": ([faulty.hanging(2 * CHUNK), faulty.whole], [None, f"bytes={2 * CHUNK}-"]),
    "breaks off": ([faulty.broken_off(10_000), faulty.whole], [None, "bytes=10000-"]),
    "breaks off twice": (
        [faulty.broken_off(10_000), faulty.broken_off(5), faulty.whole],
        [None, "bytes=10000-", "bytes=10005-"],
    ),
    "breaks off, and has no ranges": ([faulty.without_ranges(9_000), faulty.without_ranges()], [None, "bytes=9000-"]),
    "is reset": ([faulty.reset, faulty.whole], [None, None]),
    "sends nothing": ([faulty.sending(lambda body: b""), faulty.whole], [None, None]),
    "sends nothing for the rest": (
        [faulty.broken_off(9_000), faulty.broken_off(0), faulty.whole],
        [None, "bytes=9000-", "bytes=9000-"],
    ),
    "says a length too small": (
        [faulty.sending(lambda body: body[:300], length=lambda size: size), faulty.whole],
        [None, "bytes=300-"],
    ),
    "says a length too large": ([faulty.sending(bytes, length=lambda size: size + 9)], [None]),
    "sends more than the file": ([faulty.sending(lambda body: body + b"and more")], [None]),
    "sends chunks": ([faulty.in_chunks()], [None]),
    "breaks off between chunks": ([faulty.in_chunks(10_000), faulty.whole], [None, f"bytes={CHUNK}-"]),
    "the rest from a wrong place": (
        [faulty.broken_off(9_000), faulty.part("bytes 0-{size}/{size}"), faulty.whole],
        [None, "bytes=9000-", None],
    ),
    "the rest from no place": (
        [faulty.broken_off(9_000), faulty.part("?"), faulty.whole],
        [None, "bytes=9000-", None],
    ),
    "no such rest": (
        [faulty.broken_off(9_000), faulty.status(416), faulty.whole],
        [None, "bytes=9000-", None],
    ),
    "another file's rest": (
        [faulty.broken_off(9_000), faulty.part("bytes {start}-{size}/{size}"), faulty.whole],
        [None, "bytes=9000-", None],
    ),
    "is a .gz and says it is encoded": ([faulty.sending(bytes, Content_Encoding="gzip")], [None]),
    "is encoded for the journey": ([faulty.sending(gzip.compress, Content_Encoding="gzip")], [None]),
    "says it is not encoded": ([faulty.sending(bytes, Content_Encoding="identity")], [None]),
}


@pytest.mark.parametrize("case", MENDED)
def test_what_may_pass_is_tried_again(fetch, server, folder, notes, case):
    behaviours, ranges = MENDED[case]
    server.behaviours[ONE] = list(behaviours)
    assert ONE in fetch(patience=HASTY if "hangs" in case else CALM)
    assert_whole(folder)
    assert server.ranges() == ranges
    by_checksum = any("do not fit together" in message for message in notes.told)
    assert by_checksum is (case == "another file's rest"), "the answer itself gives the others away"


def test_a_slow_drip_is_waited_for_as_long_as_it_drips(fetch, server, folder, notes):
    server.behaviours[SMALL] = [faulty.dripping]
    began = time.monotonic()
    fetch(patience=Patience(read=0.6, pauses=()))
    assert time.monotonic() - began > 0.6
    assert notes.told == []
    assert_whole(folder)


def test_redirects_are_followed_with_the_range(fetch, server, folder):
    elsewhere = faulty.status(302, Location=f"/elsewhere/{ONE}")
    server.behaviours[ONE] = [elsewhere, faulty.broken_off(9_000), elsewhere, faulty.whole]
    fetch()
    assert_whole(folder)
    assert server.ranges() == [None, None, "bytes=9000-", "bytes=9000-"]


GIVEN_UP = {
    "404": ([faulty.status(404)], 1, "404 Not Found; the file may have moved; give another address by --from"),
    "403": ([faulty.status(403)], 1, "403 Forbidden; it refuses this file"),
    "an answer that nobody expects": ([faulty.status(204, b"")], 1, "204 No Content; give another address"),
    "a part that nobody asked for": ([faulty.part("bytes 0-1/2")], 1, "206 Partial Content; give another"),
    "a web page": (
        [faulty.status(200, b"<html>Log in!</html>", Content_Type="text/html; charset=utf-8")],
        1,
        "a web page came instead of the file",
    ),
    "for ever to another place": ([faulty.status(302, Location=f"/files/{ONE}")], 31, "30 redirects; give another"),
    "always 500": ([faulty.status(500)], 3, r"answers 500 Internal Server Error \(3 attempts\); .* goes on from there"),
    "always hangs": ([faulty.silent], 3, r"does not answer in time \(3 attempts\)"),
    "always empty": ([faulty.sending(lambda body: b"")], 3, f"it ended after 0 of {SIZE} bytes"),
    "other bytes of the right length": (
        [faulty.sending(lambda body: bytes(len(body)))],
        1,
        r"is not the published learn.en.gz: expected SHA-256 \w{64}, what came has \w{64}; it was thrown away",
    ),
    "other bytes, and more": ([faulty.sending(lambda body: bytes(len(body) + 5))], 1, "is not the published"),
    "other bytes, encoded": (
        [faulty.sending(lambda body: gzip.compress(bytes(2 * len(body))), Content_Encoding="gzip")],
        1,
        "is not the published",
    ),
    "an encoding that is none": (
        [faulty.sending(lambda body: b"x" + body, Content_Encoding="gzip")],
        1,
        "is not the published",
    ),
}


@pytest.mark.parametrize("case", GIVEN_UP)
def test_what_does_not_pass_is_one_message_and_no_file(fetch, server, folder, case):
    behaviours, n_asked, message = GIVEN_UP[case]
    server.behaviours[ONE] = list(behaviours)
    with pytest.raises(FetchError, match=message):
        fetch(patience=Patience(read=0.1, pauses=(0.0, 0.0)) if "hangs" in case else CALM)
    assert len(server.ranges()) == n_asked
    assert_nothing_under_its_name(folder)
    server.behaviours[ONE] = [faulty.whole]
    fetch()
    assert_whole(folder)


def test_another_file_that_always_breaks_off_is_not_fetched_for_ever(fetch, server, folder):
    def other(handler, body):
        faulty.broken_off(len(body) * 2 // 3)(handler, bytes(len(body)))

    server.behaviours[ONE] = [other]
    with pytest.raises(FetchError, match="is not the published learn.en.gz"):
        fetch()
    assert [asked is None for asked in server.ranges()] == [True, False, True, False]
    assert_nothing_under_its_name(folder)


def test_the_files_before_a_failure_stay(fetch, server, folder):
    last = list(BODIES)[-1]
    server.behaviours[last] = [faulty.status(404)]
    with pytest.raises(FetchError):
        fetch()
    server.asked.clear()
    server.behaviours[last] = []
    assert fetch() == [last]
    assert server.asked == [(last, None)]


def test_pauses_grow_and_are_told(server, folder, notes, monkeypatch):
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    server.behaviours[ONE] = [faulty.status(500)]
    with pytest.raises(FetchError):
        fetch_dataset(LITTLE, folder, base_url=server.url, watcher=notes)
    assert slept == [1.0, 2.0, 4.0, 8.0]
    assert notes.told[0] == (f"{ONE}: the server answers 500 Internal Server Error; trying again in 1 s.")


def test_what_has_come_is_kept_for_the_next_fetch(fetch, server, folder):
    server.behaviours[ONE] = [faulty.broken_off(9_000), faulty.status(404)]
    with pytest.raises(FetchError):
        fetch()
    server.asked.clear()
    server.behaviours[ONE] = [faulty.whole]
    fetch()
    assert server.ranges() == ["bytes=9000-"]
    assert_whole(folder)


LEFT_OVER = {
    "the beginning": (BODIES[ONE][:700], ["bytes=700-"]),
    "all, not yet checked": (BODIES[ONE], []),
    "nothing": (b"", [None]),
    "more than all": (BODIES[ONE] + b"x", [None]),
    "another file's beginning": (bytes(700), ["bytes=700-", None]),
    "as much of another file": (bytes(len(BODIES[ONE])), [None]),
}


@pytest.mark.parametrize("case", LEFT_OVER)
def test_pieces_of_a_former_fetch_make_a_whole_or_are_thrown_away(fetch, server, folder, case):
    left, ranges = LEFT_OVER[case]
    put_pieces(folder, left)
    fetch()
    assert server.ranges() == ranges
    assert_whole(folder)


def test_what_pooch_left_when_it_was_killed_is_removed(fetch, folder):
    put_pieces(folder, b"")
    (folder / WORKSHOP / "tmpabcd").write_bytes(b"half")
    (folder / WORKSHOP / ONE).write_bytes(b"half")
    fetch()
    assert_whole(folder)


def test_a_file_of_the_user_is_named_and_replaced_only_with_leave(fetch, server, folder):
    folder.mkdir()
    (folder / ONE).write_bytes(b"mine")
    (folder / SMALL).write_bytes(bytes(len(BODIES[SMALL])))
    with pytest.raises(FetchError, match=rf"learn.en.gz is 4 bytes long instead of {SIZE}; check.de.gz is damaged"):
        fetch()
    assert (folder / ONE).read_bytes() == b"mine"
    assert server.asked == []
    server.behaviours[ONE] = [faulty.status(404)]
    with pytest.raises(FetchError, match="404"):
        fetch(overwrite=True)
    assert (folder / ONE).read_bytes() == b"mine"
    server.behaviours[ONE] = [faulty.whole]
    assert fetch(overwrite=True) == list(BODIES)
    assert_whole(folder)


def test_a_folder_in_the_place_of_a_file_is_one_message(fetch, folder):
    (folder / ONE).mkdir(parents=True)
    with pytest.raises(FetchError, match="learn.en.gz is no file, but a folder"):
        fetch()
    with pytest.raises(FetchError, match="cannot write .*learn.en.gz: Is a directory"):
        fetch(overwrite=True)


def test_two_fetches_at_once_wait_for_each_other(fetch, server, folder):
    """The first is held up by the server until the second has said that it waits."""
    came, first, second = [], Notes(), Notes()
    second.tell = lambda message: (second.told.append(message), server.released.set())

    def hold(handler, body):
        server.released.wait(30)
        faulty.whole(handler, body)

    server.behaviours[ONE] = [hold]
    patient = Patience(read=30.0, pauses=())
    threads = [
        threading.Thread(target=lambda watcher=watcher: came.append(fetch(watcher=watcher, patience=patient)))
        for watcher in (first, second)
    ]
    threads[0].start()
    while not server.asked:
        time.sleep(0.01)
    threads[1].start()
    for thread in threads:
        thread.join(30)
    assert sorted(came) == [[], list(BODIES)]
    assert second.told == [f"Another fetch is at work in {folder}; waiting for it to end."]
    assert len(server.asked) == len(BODIES)
    assert_whole(folder)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_nobody_listens(fetch):
    with pytest.raises(FetchError, match=r"no connection to 127.0.0.1:\d+ \(Connection refused\); check that"):
        fetch(base_url=f"http://127.0.0.1:{free_port()}")


def test_a_name_that_nobody_knows(fetch):
    with pytest.raises(FetchError, match=r"no connection to published.invalid \(Name or service not known\)"):
        fetch(base_url="https://published.invalid/files")


def test_a_certificate_that_is_none(fetch, server):
    with pytest.raises(FetchError, match="certificate of 127.0.0.1.* not accepted.*REQUESTS_CA_BUNDLE"):
        fetch(base_url=server.url.replace("http", "https"))


@pytest.mark.parametrize("url", ["files", "ftp://127.0.0.1/x", "http://", "http://[/x", ""])
def test_an_address_that_is_none(fetch, url):
    with pytest.raises(FetchError, match="expected one that begins with https:// or http://"):
        fetch(base_url=url or "/")


def test_the_proxy_of_the_environment_is_asked(fetch, server, folder, monkeypatch):
    monkeypatch.setenv("http_proxy", server.url)
    fetch(base_url="http://published.invalid/files")
    assert_whole(folder)
    assert {path.rpartition("/")[0] for path, _ in server.requests} == {"http://published.invalid/files"}


def test_a_proxy_that_does_not_answer_is_named_as_such(fetch, monkeypatch):
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    with pytest.raises(FetchError, match="the proxy does not let us through; check HTTPS_PROXY"):
        fetch(base_url="http://published.invalid/files")


def test_passwords_are_not_shown(fetch, server):
    server.behaviours[ONE] = [faulty.status(404)]
    with pytest.raises(FetchError) as caught:
        fetch(base_url=server.url.replace("//", "//me:secret@"))
    assert "secret" not in str(caught.value)
    assert server.requests[0][1]["Authorization"].startswith("Basic ")


def test_the_server_is_asked_for_the_bytes_as_they_are(fetch, server):
    fetch(base_url=f"{server.url}/")
    assert [path for path, _ in server.requests] == [f"/files/{name}" for name in BODIES]
    assert {headers["Accept-Encoding"] for _, headers in server.requests} == {"identity"}
    assert all(headers["User-Agent"].startswith("ttutor/") for _, headers in server.requests)


def test_a_full_disk_is_one_message(fetch, folder, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(FetchError, match=r"cannot write .*little: No space left on device; make room"):
            fetch()
    assert_nothing_under_its_name(folder)
    fetch()
    assert_whole(folder)


def test_a_file_in_the_place_of_the_folder_is_one_message(fetch, folder):
    folder.write_text("mine")
    with pytest.raises(FetchError, match="cannot write .*little: File exists; a file stands where a folder"):
        fetch()


@pytest.mark.skipif(os.name != "posix", reason="needs a folder that the system itself keeps read-only")
def test_a_read_only_folder_is_one_message_and_enough_to_read(fetch, folder, server):
    fetch()
    (folder / LOCK).unlink()
    folder.chmod(0o500)
    try:
        assert fetch() == []
        assert not (folder / LOCK).exists(), "all is there, so nothing has to be written"
        if os.geteuid():
            with pytest.raises(FetchError, match="cannot write .*little: Permission denied; you may not write there"):
                fetch_dataset(MULTI30K, folder, base_url=server.url)
    finally:
        folder.chmod(0o700)


def test_a_system_that_refuses_the_folder_is_one_message(fetch, folder, monkeypatch):
    def read_only(path, *_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(os, "mkdir", read_only)
    with pytest.raises(FetchError, match="cannot write .*little: Read-only file system; you may not write there"):
        fetch()


# A shell that runs the tests in the background lets its children ignore Ctrl-C; this one hears it again.
PROGRAM = """
import signal
import sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from tests.corpora.faulty_server import LITTLE
from ttutor.cli import main
from ttutor.corpora import datasets
datasets.DATASETS["little"] = LITTLE
sys.exit(main(sys.argv[1:]))
"""


def begun(server, folder) -> subprocess.Popen:
    """A `ttutor fetch little` in a process of its own, held up by the server with half a file."""
    server.behaviours[ONE] = [faulty.hanging(3 * CHUNK), faulty.whole]
    arguments = ["fetch", "little", "--data-dir", str(folder.parent), "--from", server.url]
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    pieces = folder / WORKSHOP / f"{ONE}{PIECES}"
    deadline = time.monotonic() + 60
    while not (pieces.exists() and pieces.stat().st_size >= 2 * CHUNK) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return process


@pytest.mark.skipif(os.name != "posix", reason="sends a signal the POSIX way")
def test_a_fetch_that_was_killed_goes_on(fetch, server, folder):
    with begun(server, folder) as process:
        process.kill()
        process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL
    assert_nothing_under_its_name_but_pooch(folder)
    n_here = (folder / WORKSHOP / f"{ONE}{PIECES}").stat().st_size
    assert fetch() == list(BODIES)
    assert server.ranges() == [None, f"bytes={n_here}-"]
    assert_whole(folder)


def assert_nothing_under_its_name_but_pooch(folder: Path) -> None:
    """A killed process cannot clean up; what it leaves is in the workshop alone."""
    assert {path.name for path in folder.iterdir()} <= {LOCK, WORKSHOP}


@pytest.mark.skipif(os.name != "posix", reason="sends a signal the POSIX way")
def test_ctrl_c_says_how_to_go_on(fetch, server, folder):
    with begun(server, folder) as process:
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=30)[1]
    assert process.returncode == 130
    again = f"ttutor fetch little --data-dir {folder.parent} --from {server.url}"
    assert errors == f"\nStopped; what has come is kept. Go on with: {again}\n"
    fetch()
    assert server.ranges()[1].startswith("bytes=")
    assert_whole(folder)


@pytest.fixture
def ttutor(tmp_path, server, monkeypatch, as_readers_run_it):
    """Run a command that knows the little data set, in an empty folder; returns its result."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(datasets.DATASETS, "little", datasets.DataSet(**(vars(LITTLE) | {"base_url": server.url})))
    app = cli.build_app()

    def run(*arguments: str, code: int = 0):
        result = CliRunner().invoke(app, list(arguments))
        assert result.exit_code == code, result.output
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result

    return run


def test_the_command_tells_what_came_and_what_was_there(ttutor, folder):
    told = ttutor("fetch", "little", "--data-dir", ".").output
    assert told.splitlines()[0] == f"learn.en.gz: {SIZE} bytes, fetched"
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
    assert f"{SMALL}: {len(BODIES[SMALL]):,} bytes, fetched" in told
    assert_whole(folder)


def test_the_folder_of_the_environment_is_used(ttutor, tmp_path):
    ttutor("fetch", "little")
    assert_whole(tmp_path / "unused" / "little")
    assert find_dataset("little", "en-de")["train"][0] == tmp_path / "unused" / "little" / ONE


def test_wrong_use_is_one_message_and_code_2(ttutor, server):
    assert "no data set 'large'; known are: multi30k, little" in ttutor("fetch", "large", code=2).output
    assert "little has no languages 'en'" in ttutor("fetch", "little", "--languages", "en", code=2).output
    server.behaviours[ONE] = [faulty.status(404)]
    assert "Error: http://127.0.0.1:" in ttutor("fetch", "little", code=2).stderr


def test_the_bar_shows_bytes_on_a_terminal_and_takes_itself_away(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    one, other = LITTLE.files[:2]
    bar = DownloadBar([one, other])
    bar.has(one, one.size)
    bar.has(other, 0)
    bar.tell("trying again")
    bar.close()
    shown = capsys.readouterr().err
    total = LITTLE.files[0].size + LITTLE.files[1].size
    assert f"{one.size / 1000:.1f}k/{total / 1000:.1f}k" in shown.partition("trying again\n")[2]
    assert shown.endswith("\r")
    quiet = DownloadBar([one], quiet=True)
    quiet.has(one, 5)
    quiet.tell("trying again")
    quiet.close()
    assert capsys.readouterr().err == ""


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
    with pytest.raises(CorpusError) as caught:
        find_dataset("multi30k", "en-fr", data_dir=folder.parent)
    told = str(caught.value)
    assert f"multi30k is not whole in {folder.parent / 'multi30k'}: it lacks test_2016_flickr.en.gz" in told
    assert f"`ttutor fetch multi30k --data-dir {folder.parent}`" in told
    assert "copy these files there from https://raw.githubusercontent.com/multi30k/dataset/" in told
    assert ".de.gz" not in told
    fetch()
    (folder / SMALL).write_bytes(bytes(len(BODIES[SMALL])))
    with pytest.raises(CorpusError, match=r"not whole .*: check.de.gz is damaged: its SHA-256 is .* --overwrite`"):
        find_dataset(LITTLE, "en-de", data_dir=folder.parent)
    with pytest.raises(CorpusError, match="there is no data set 'large'"):
        find_dataset("large", "en-de")
    with pytest.raises(CorpusError, match="'en-en'"):
        find_dataset(LITTLE, "en-en")


@pytest.mark.skipif(os.name != "posix" or not os.path.exists("/proc/self/mem"), reason="needs a file nobody can read")
def test_a_file_that_cannot_be_read_is_named():
    with pytest.raises(CorpusError, match="/proc/self/mem cannot be read: .*; check its permissions"):
        DataFile("mem", 0, "").fault(Path("/proc/self"))


def test_the_published_files_are_found(multi30k):
    for pair in MULTI30K.pairs:
        found = find_dataset("multi30k", pair, data_dir=multi30k.parent)
        assert list(found) == ["train", "validation", "test"]
        assert all(path.is_file() for both in found.values() for path in both)


def test_the_published_files_come_through_the_fetch(multi30k, server, tmp_path, monkeypatch):
    names = [file.name for file in MULTI30K.files]
    monkeypatch.setattr(faulty, "BODIES", {name: (multi30k / name).read_bytes() for name in names})
    server.behaviours["train.de.gz"] = [faulty.broken_off(100_000), faulty.whole]
    assert fetch_dataset(MULTI30K, tmp_path / "multi30k", base_url=server.url, patience=CALM) == names
    assert server.ranges("train.de.gz") == [None, "bytes=100000-"]
    shutil.copy(multi30k / "val.en.gz", tmp_path / "multi30k" / "val.de.gz")
    with pytest.raises(CorpusError, match="val.de.gz is 21,650 bytes long instead of 24,681"):
        find_dataset("multi30k", "en-de", data_dir=tmp_path)
    assert len(find_dataset("multi30k", "en-fr", data_dir=tmp_path)) == 3


def test_the_papers_stand_in_the_bibliography():
    bibliography = (ROOT / "book" / "references.bib").read_text(encoding="utf-8")
    for key, paper in MULTI30K.papers.items():
        entry = bibliography.partition(f"{{{key},")[2].partition("\n}")[0]
        assert paper.rpartition("arXiv:")[2] in entry
