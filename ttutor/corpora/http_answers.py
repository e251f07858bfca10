"""What a server answers to the question for a file, or for the rest of one, and what to make of it.

Either a body of which the beginning has its known place in the file, or one of two failures: an `Interruption`, which
another attempt may mend, or a `FetchError`, which a person has to.
"""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import requests
import urllib3

from ttutor import __version__
from ttutor.errors import FetchError

CHUNK = 8_192
"""How many bytes are asked for at once; what is lost when the connection hangs is less."""

MAY_PASS = {408, 425, 429}
"""Answers of the server besides those from 500 on that another attempt may change."""

ADVICE = {
    401: "it asks for a password; give another address by --from",
    403: "it refuses this file to you; give another address by --from",
    404: "the file may have moved; give another address by --from",
    407: "the proxy asks for a password; give it in HTTPS_PROXY (or HTTP_PROXY)",
    410: "the file is gone; give another address by --from",
}


@dataclass(frozen=True)
class Patience:
    """How many seconds to wait: for a connection, for its next bytes, and before each further attempt."""

    connect: float = 10.0
    read: float = 30.0
    pauses: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0)


class Interruption(Exception):
    """An attempt that failed for a reason that may pass."""


@contextmanager
def answer(url: str, start: int, patience: Patience) -> Iterator[requests.Response]:
    """Ask for a file from its byte `start` on; gives the response, of which the body is still to come.

    Raises:
        Interruption: there is none, which may pass.
        FetchError: there is none, and another attempt would not change it.
    """
    headers = {"Accept-Encoding": "identity", "User-Agent": f"ttutor/{__version__}"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        response = requests.get(url, headers=headers, stream=True, timeout=(patience.connect, patience.read))
    except (requests.RequestException, urllib3.exceptions.HTTPError, ValueError) as error:
        raise connection_trouble(error, url) from None
    with response:
        yield response


def body_start(response: requests.Response, start: int, url: str) -> int | None:
    """The place in the file of the body's first byte; None where the server has no part that begins at `start`.

    Raises:
        Interruption: the server cannot answer now.
        FetchError: it will not, or sends a web page.
    """
    status = response.status_code
    said = f"the server answers {status} {response.reason or ''}".rstrip()
    if status >= 500 or status in MAY_PASS:
        raise Interruption(said)
    if start and status in (206, 416):
        fits = status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {start}-")
        return start if fits else None
    if status != 200:
        raise FetchError(f"{without_password(url)}: {said}; {ADVICE.get(status, 'give another address by --from')}")
    if response.headers.get("Content-Type", "").lower().startswith("text/html"):
        raise FetchError(
            f"{without_password(url)}: a web page came instead of the file; log in to the network that you are in, "
            "or give another address by --from"
        )
    return 0


def chunks(response: requests.Response, at_most: int) -> Iterator[bytes]:
    """The bytes of the body as they travel, piece by piece.

    Raises:
        Interruption: they stop coming.
    """
    while at_most > 0:
        try:
            chunk = response.raw.read(min(CHUNK, at_most), decode_content=False)
        except urllib3.exceptions.TimeoutError:
            raise Interruption("the connection hangs") from None
        except urllib3.exceptions.HTTPError:
            raise Interruption("the connection broke off") from None
        if not chunk:
            return
        yield chunk
        at_most -= len(chunk)


def unpacked(data: bytes, size: int) -> bytes:
    """What gzip has packed, no more than one byte over `size`; data that gzip did not pack, as it is.

    >>> import gzip
    >>> unpacked(gzip.compress(b"abc"), 3), unpacked(gzip.compress(b"abc"), 1), unpacked(b"abc", 3)
    (b'abc', b'ab', b'abc')
    """
    try:
        return zlib.decompressobj(wbits=31).decompress(data, size + 1)
    except zlib.error:
        return data


def connection_trouble(error: Exception, url: str) -> Interruption | FetchError:
    """What to raise where a request got no answer: an interruption where another attempt may help."""
    shown = without_password(url)
    host = shown.partition("://")[2].partition("/")[0]
    if isinstance(error, requests.exceptions.ProxyError):
        return FetchError(f"{shown}: the proxy does not let us through; check HTTPS_PROXY, HTTP_PROXY and NO_PROXY")
    if isinstance(error, requests.exceptions.SSLError):
        return FetchError(
            f"{shown}: the certificate of {host} is not accepted; check the clock of this machine and, in a network "
            "with certificates of its own, name their file in REQUESTS_CA_BUNDLE"
        )
    if isinstance(error, requests.Timeout):
        return Interruption(f"{host} does not answer in time")
    reason = getattr(error.args[0] if error.args else None, "reason", None)
    if isinstance(reason, urllib3.exceptions.NewConnectionError):
        why = getattr(reason.__cause__, "strerror", None) or "no connection"
        return FetchError(
            f"{shown} cannot be fetched: no connection to {host} ({why}); check that this machine is online"
        )
    if isinstance(error, requests.ConnectionError):
        return Interruption("the connection broke off")
    if isinstance(error, ValueError):
        return FetchError(f"{shown} is no address to fetch from: expected one that begins with https:// or http://")
    return FetchError(f"{shown} cannot be fetched: {str(error).rstrip('.')}; give another address by --from")


def without_password(url: str) -> str:
    """An address as it may be shown.

    >>> without_password("https://me:secret@example.org/a.gz")
    'https://example.org/a.gz'
    """
    start, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{start}{separator}{host.rpartition('@')[2]}{slash}{path}"
