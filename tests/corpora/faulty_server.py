"""A web server on this machine that fails in every way that it is told to, and a small data set for it to hold."""

import gzip
import hashlib
import re
import socket
import struct
import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random

from ttutor.corpora.datasets import DataFile, DataSet

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
    files=tuple(DataFile(name, len(body), hashlib.sha256(body).hexdigest()) for name, body in BODIES.items()),
    base_url="http://127.0.0.1:9/unset",
    papers={"nobody2026": "Nobody 2026"},
    terms="Made up, free for every use.",
)

Behaviour = Callable[["Handler", bytes], None]


class Handler(BaseHTTPRequestHandler):
    """Answers a request as the server's list for its file says; the last of the list, again and again."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.close_connection = True
        name = self.path.rpartition("/")[2]
        behaviours = self.server.behaviours[name]
        self.server.asked.append((name, self.headers.get("Range")))
        self.server.requests.append((self.path, dict(self.headers)))
        behaviour = behaviours.pop(0) if len(behaviours) > 1 else (behaviours or [whole])[0]
        with suppress(BrokenPipeError, ConnectionResetError):  # whoever asked has heard enough
            behaviour(self, BODIES[name])

    def begin(self, status: int, length: int | None, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.send_header("Connection", "close")
        self.end_headers()

    def start(self) -> int:
        """The byte from which the question wants the file."""
        return int(re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", "bytes=0-"))[1])

    def log_message(self, *_) -> None:
        pass


class FaultyServer(ThreadingHTTPServer):
    """`behaviours` says how it answers for each file; `asked` is what it was asked: names and ranges."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.behaviours: dict[str, list[Behaviour]] = defaultdict(list)
        self.asked: list[tuple[str, str | None]] = []
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.released = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/files"

    def ranges(self, name: str = ONE) -> list[str | None]:
        """The ranges that were asked of one file."""
        return [asked for file, asked in self.asked if file == name]


def whole(handler: Handler, body: bytes) -> None:
    """As it should be: all, or the part that is asked for."""
    broken_off(len(body))(handler, body)


def broken_off(n_bytes: int) -> Behaviour:
    """Send so many bytes of what is asked for, and close the connection."""

    def send(handler: Handler, body: bytes) -> None:
        start = handler.start()
        if start:
            place = f"bytes {start}-{len(body) - 1}/{len(body)}"
            handler.begin(206, len(body) - start, Content_Range=place)
        else:
            handler.begin(200, len(body))
        handler.wfile.write(body[start:][:n_bytes])

    return send


def without_ranges(n_bytes: int | None = None) -> Behaviour:
    """Send the file from its beginning, whatever is asked for; perhaps not all of it."""

    def send(handler: Handler, body: bytes) -> None:
        handler.begin(200, len(body))
        handler.wfile.write(body[:n_bytes])

    return send


def hanging(n_bytes: int) -> Behaviour:
    """Send so many bytes and then nothing until the test ends."""

    def send(handler: Handler, body: bytes) -> None:
        handler.begin(200, len(body))
        handler.wfile.write(body[:n_bytes])
        handler.server.released.wait(30)

    return send


def silent(handler: Handler, body: bytes) -> None:
    """Take the question and answer nothing until the test ends."""
    handler.server.released.wait(30)


def dripping(handler: Handler, body: bytes) -> None:
    """Send the file in drops, each within the patience, together far beyond it."""
    handler.begin(200, len(body))
    for start in range(0, len(body), 100):
        handler.wfile.write(body[start : start + 100])
        handler.server.released.wait(0.1)


def reset(handler: Handler, body: bytes) -> None:
    """Break the connection off as a machine does that knows nothing of it."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.rfile.close()
    handler.wfile.close()
    handler.connection.close()


def status(code: int, content: bytes = b"no", **headers: str) -> Behaviour:
    """Answer with a status and something that is not the file."""

    def send(handler: Handler, body: bytes) -> None:
        handler.begin(code, len(content), **headers)
        handler.wfile.write(content)

    return send


def sending(change: Callable[[bytes], bytes], length: Callable[[int], int] = int, **headers: str) -> Behaviour:
    """Send a changed file from its beginning, perhaps with a length that is not its own."""

    def send(handler: Handler, body: bytes) -> None:
        body = change(body)
        handler.begin(200, length(len(body)), **headers)
        handler.wfile.write(body)

    return send


def part(place: str, code: int = 206) -> Behaviour:
    """Answer a question for the rest with this place (`{start}`, `{size}`), and the file from its beginning."""

    def send(handler: Handler, body: bytes) -> None:
        start, size = handler.start(), len(body)
        handler.begin(code, size, Content_Range=place.format(start=start, size=size))
        handler.wfile.write(body)

    return send


def in_chunks(n_bytes: int | None = None) -> Behaviour:
    """Send the file without its length, piece by piece; perhaps not all of it."""

    def send(handler: Handler, body: bytes) -> None:
        handler.begin(200, None, Transfer_Encoding="chunked")
        for start in range(0, len(body[:n_bytes]), 5_000):
            piece = body[start : start + 5_000]
            handler.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        if n_bytes is None:
            handler.wfile.write(b"0\r\n\r\n")

    return send
