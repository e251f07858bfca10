"""Older attacks: ways to leave, to forge values and frames, to use up, to look around, and files that are none.

What a worker is kept from (processes, sockets, files, other memory) is tried deed by deed in `test_sandbox`; what
comes through its pipe byte by byte in `test_protocol`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from textwrap import dedent

from ttutor.grading.marks import SourceFile

__all__ = ["ATTACKS"]

WRONG = "def softmax(scores, dim=-1):\n    return scores * 0 + 0.5\n"
IMPORTS = "import ctypes, gc, glob, json, math, os, re, signal, struct, sys, threading, time, torch\n"
TO_ALL = """
def raw(data):
    for fd in range(3, 64):
        try:
            os.write(fd, data)
        except OSError:
            pass

def say(header, body=b"", count=1):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    raw((struct.pack(">II", len(text), len(body)) + text + body) * count)
"""

LOADING = {
    "ends its process while it is loaded": "os._exit(0)",
    "asks Python to end while it is loaded": "sys.exit(0)",
    "never finishes loading": "while True: pass",
    "defines a hundred thousand names": "\n".join(f"x{n} = {n}" for n in range(100_000)),
    "defines slowly, a thousand times": "time.sleep(0.9)\n" * 1000,
    "leaves a thread that ends the process": "threading.Thread(target=os._exit, args=(0,)).start()",
    "replaces what compares tensors": """
        import builtins
        torch.allclose = torch.equal = torch.isclose = lambda *a, **k: True
        torch.Tensor.__eq__ = lambda self, other: True
        builtins.all = builtins.any = math.isclose = lambda *a, **k: True
        """,
    "replaces the worker's functions": """
        for name, module in list(sys.modules.items()):
            for key in list(vars(module)) if name.startswith("worker") else ():
                if callable(vars(module)[key]) and not key.startswith("__"):
                    setattr(module, key, lambda *a, **k: {"right": True, "points": 100})
        """,
}
CALLS = {
    # leaving
    "ends its process with success": "os._exit(0)",
    "asks Python to end with success": "sys.exit(0)",
    "kills its own process": "os.kill(os.getpid(), signal.SIGKILL)",
    "aborts": "os.abort()",
    "stops, and never answers": "os.kill(os.getpid(), signal.SIGSTOP)",
    "reads memory that is not there": "return ctypes.string_at(0)",
    "raises what ends programs": "raise KeyboardInterrupt",
    "raises what ends generators": "raise GeneratorExit",
    "fills the stack": "sys.setrecursionlimit(10**8)\nreturn (lambda f: f(f))(lambda f: f(f))",
    "becomes another program": "os.execv('/bin/sh', ['sh', '-c', 'echo score: 100'])",
    "closes its pipes": "os.closerange(0, 4096)\nreturn scores",
    "loops in Python": "while True: pass",
    "loops in C, where no alarm reaches": "return sum(range(10**13))",
    "loops in the matching of a pattern": "return re.match('(a+)+$', 'a' * 60 + 'b')",
    "sleeps deaf": "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\ntime.sleep(10**6)",
    # using up
    "asks for 20 GB": "return bytearray(20 * 10**9)",
    "asks for a tensor of 40 GB": "return torch.ones(10**10)",
    "asks for memory bit by bit": "kept = []\nwhile True: kept.append(bytearray(10**7))",
    "prints a gigabyte": "print('100 points ' * 10**8)\nreturn scores",
    "writes to every stream": "for fd in (0, 1, 2): os.write(fd, b'passed' * 10**6)\nreturn scores",
    "opens files without end": "kept = [open('/dev/null') for _ in range(10**6)]",
    "returns a trillion numbers": "return torch.ones(1).expand(10**12)",
    "returns a million values": "return [1.0] * 10**6",
    "returns a text of 100 MB": "return 'right' * 2 * 10**7",
    "returns a million digits": "return 10**10**6",
    "returns lists in lists": "v = []\nfor _ in range(10**5): v = [v]\nreturn v",
    "returns a list that holds itself": "v = []\nv.append(v)\nreturn v",
    # frames in the worker's place
    "claims full marks": "say({'ok': True, 'score': 100})\nreturn scores",
    "says that all is right": "[say({'id': n, 'right': True}) for n in range(99)]\nreturn scores",
    "answers ahead": "[say({'id': n, 'value': None, 'inputs': {'list': []}}) for n in range(99)]\nreturn scores",
    "says that all is done": "[say({'id': n, 'done': True}) for n in range(99)]\nreturn scores",
    "announces 4 GiB": "raw(b'\\xff' * 8)\nreturn scores",
    "sends no JSON": "say(b'{\"id\": NaN}')\nreturn scores",
    "sends half a frame and waits": "raw(b'\\0\\0\\0')\ntime.sleep(10**6)",
    "sends frames for ever": "while True: say({'id': 7}, count=1000)",
    "sends torn tensors": """
        text = json.dumps({'0': {'dtype': 'F32', 'shape': [2**30, 2**30], 'data_offsets': [0, 8]}}).encode()
        body = len(text).to_bytes(8, 'little') + text + bytes(8)
        [say({'id': n, 'value': {'tensor': 0}, 'inputs': {'list': [None, None]}, 'used': []}, body) for n in range(99)]
        """,
    # looking for the answer
    "imports the reference": "import ttutor.exercises as all\nreturn all.find('attention.softmax').reference(scores)",
    "finds the reference on the disk": """
        sys.meta_path[:] = [one for one in sys.meta_path if type(one).__name__ != "Given"]
        for name in [name for name in sys.modules if name.split(".")[0] == "ttutor"]:
            del sys.modules[name]
        for depth in range(1, 8):
            for place in glob.glob("/*" * depth + "/ttutor/exercises/exercise.py"):
                sys.path.insert(0, place.partition("/ttutor/exercises")[0])
        from ttutor.exercises import find
        return find("attention.softmax").reference(scores, dim)
        """,
    "searches the memory": """
        for one in gc.get_objects():
            if isinstance(one, torch.Tensor) and one.shape == scores.shape and one is not scores:
                if torch.allclose(one.sum(dim), one.sum(dim) * 0 + 1, atol=1e-3):
                    return one
        frame = sys._getframe()
        while frame:
            for name in {"expected", "reference", "exercise"} & set(frame.f_locals):
                return frame.f_locals[name]
            frame = frame.f_back
        """,
    "answers in the worker's place": """
        frame = sys._getframe()
        while frame:
            worker = frame.f_locals.get("self")
            if hasattr(worker, "_reply"):
                for number in range(99):
                    worker._reply({"id": number, "value": True, "inputs": {"list": []}, "points": 100}, b"")
            frame = frame.f_back
        return scores
        """,
    # forged values
    "returns what equals everything": """
        class Anything:
            shape, dtype, device, layout = (4, 7), None, None, None
            __eq__ = __bool__ = lambda *given: True
            __getattr__ = lambda self, name: lambda *args, **kwargs: self
        return Anything()
        """,
    "returns a tensor that agrees": """
        class Agrees(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                return True if "eq" in function.__name__ or "close" in function.__name__ else NotImplemented
        return scores.as_subclass(Agrees)
        """,
    "returns what runs code when unpickled": """
        class Bomb:
            def __reduce__(self):
                return os.system, ("touch /tmp/ttutor-was-here",)
        return [Bomb(), {"x": Bomb()}]
        """,
    "returns numbers and texts that lie": """
        class One(float):
            __eq__ = lambda self, other: True
            __sub__ = __rsub__ = __mul__ = __abs__ = lambda *given: 0.0
        class Text(str):
            __eq__ = lambda self, other: True
            __hash__ = str.__hash__
        return {Text("x"): One(1.0)}
        """,
    "returns a list that never ends": """
        class Endless(list):
            def __iter__(self):
                while True:
                    yield 1.0
        return Endless([1.0])
        """,
    "raises what explodes when looked at": """
        class Passed(Exception):
            def __str__(self):
                raise SystemExit(0)
        raise Passed()
        """,
    "raises what is named as the judge's own": """
        class StudentCodeFailed(Exception):
            kind = "ok"
        raise (StudentCodeFailed if dim == -1 else type("Malformed", (ValueError,), {}))("ok " * 10**6)
        """,
    "says NotImplementedError, for mercy": "raise NotImplementedError('all tests passed')",
    "returns NaN": "return scores * float('nan')",
    "changes the question": "scores.data = scores.data.new_zeros(1)\nreturn scores.new_ones(1)",
    "calls what it should build": "return torch.softmax(scores, dim)",
}
NAMES = (
    "../../../etc/cron.d/evil.py",
    "/etc/passwd.py",
    "a; rm -rf $HOME; b.py",
    "$(touch ttutor-was-here).py",
    "-rf.py",
    "con.py",
    "line\nbreak.py",
    "\u202egnp.py",
    "<img src=x onerror=alert(1)>.py",
    "=cmd|' /C calc'!A0.py",
    "x" * 5000 + ".py",
)


def _cells(*sources: object, **more: object) -> bytes:
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": source} for source in sources]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells} | more).encode()


SHELL = ("!touch /tmp/ttutor-was-here", "%%bash\ntouch /tmp/ttutor-was-here", "%run evil.py", "%load_ext evil", WRONG)
FILES: dict[str, bytes | Callable[[], bytes]] = {
    "an empty file": b"",
    "bytes that are no text": bytes(range(256)) * 40,
    "null bytes": b"\0" * 1000 + WRONG.encode(),
    "a coding that transforms its text": b"# coding: rot13\n" + WRONG.encode(),
    "a coding that hides code": b"# coding: utf-7\n+AG8AcwAuAF8AZQB4AGkAdA-(0)\n",
    "half of UTF-16": WRONG.encode("utf-16")[:-1],
    "characters that do not exist": b"x = '\\ud800'\n\xed\xa0\x80 = 1\n" + WRONG.encode(),
    "a hundred thousand parentheses": b"x = " + b"(" * 100_000 + b")" * 100_000,
    "a million minus signs": b"x = " + b"-" * 1_000_000 + b"1\n" + WRONG.encode(),
    "a hundred nested blocks": "".join(f"{' ' * n}if 1:\n" for n in range(100)).encode() + b" " * 100 + b"x = 1\n",
    "a sum of 200,000 terms": b"x = " + b"+".join([b"1"] * 200_000) + b"\n" + WRONG.encode(),
    "a chain of 100,000 attributes": b"x = a" + b".a" * 100_000 + b"\n" + WRONG.encode(),
    "constants that grow": b"x = (((((9**99)**9)**9)**9)**9)**9\ny = 'a' * 10**12\n" + WRONG.encode(),
    "a number of a million digits": b"x = " + b"9" * 1_000_000 + b"\n" + WRONG.encode(),
    "100 MB": lambda: WRONG.encode() + b"# all work and no play\n" * (100 * 2**20 // 23),
    "140 MB": lambda: bytes(140 * 2**20),
    "an archive that calls itself Python": b"PK\x03\x04" + bytes(1000),
    "no JSON.ipynb": b"{ not json",
    "nested deep.ipynb": b"[" * 100_000 + b"]" * 100_000,
    "other types.ipynb": _cells({"a": 1}, 7, None, [1, 2], [["x"]]),
    "claims.ipynb": _cells(WRONG, passed=True, metadata={"points": 100, "__class__": "os.system"}),
    "shell.ipynb": _cells(*SHELL),
    "ten thousand cells.ipynb": _cells(*["x = 1"] * 10_000),
    "no cells.ipynb": b'{"nbformat": 4, "cells": {}}',
}


def _python(text: str) -> tuple[SourceFile, ...]:
    return (SourceFile("homework.py", (IMPORTS + TO_ALL + text).encode()),)


def _called(code: str) -> tuple[SourceFile, ...]:
    body = "\n".join(f"    {line}" for line in dedent(code).strip().splitlines())
    return _python(f"def softmax(scores, dim=-1):\n{body}\n")


def _file(name: str, data: bytes | Callable[[], bytes]) -> tuple[SourceFile, ...]:
    ending = ".ipynb" if name.endswith(".ipynb") else ".py"
    return (SourceFile(f"homework{ending}", data() if callable(data) else data),)


ATTACKS: dict[str, Callable[[], tuple[SourceFile, ...]]] = {
    "names that are paths and commands": lambda: tuple(SourceFile(one, WRONG.encode()) for one in NAMES),
    "three hundred files": lambda: tuple(SourceFile(f"{n}.py", b"x = 1\n") for n in range(300)),
    **{name: lambda code=code: _python(dedent(code) + "\n" + WRONG) for name, code in LOADING.items()},
    **{name: lambda code=code: _called(code) for name, code in CALLS.items()},
    **{name: lambda name=name, data=data: _file(name, data) for name, data in FILES.items()},
}
"""Of each attack its name and what makes the files that are handed in."""
