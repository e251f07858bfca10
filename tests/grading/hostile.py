"""Forty submissions that want points or harm, beside those in `attacks`: they aim at what a worker gives back.

Each stands for a way, not for a trick: replaced probes, forbidden functions by roundabout ways, memory outside limits,
replies that load the judge or make it fail, and traces that outlive the run.
"""

from __future__ import annotations

SOFTMAX, DROPOUT = "attention.softmax", "encoder.dropout"
TIED, BATCHES = "transformer.tied_embeddings", "training.plan_batches"

REPLACES = """
import sys
import torch

def replace(module, **functions):
    for name, function in functions.items():
        setattr(sys.modules[module], name, function)

class FeatureDropout:
    def __init__(self, p): pass

class TiedEmbedding:
    def __init__(self, vocab_size, d_model): pass

def plan_batches(lengths, budget):
    return []
"""
FACTS = "{'the result': 'as many features as came', 'what evaluation does': 'nothing', 'the share': 'p'}"
TO_ALL = """
import json, os, struct

def say(header, body=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    for fd in range(3, 64):
        try:
            os.write(fd, struct.pack(">II", len(text), len(body)) + text + body)
        except OSError:
            pass
"""


def _answer(body: str, before: str = "", arguments: str = "scores, dim=-1") -> str:
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    return f"import os, sys, torch\n{before}\ndef my_softmax({arguments}):\n{lines}\n"


PROBES = {
    "probe of dropout gives facts": REPLACES
    + f"import ttutor.exercises.encoder.dropout_probes as probes\nprobes.observe = lambda *given: {FACTS}\n",
    "probe of dropout gives right verdicts as tensors": REPLACES
    + "import ttutor.exercises.encoder.dropout_probes as probes\n"
    "probes.observe = lambda answer, features, p: {name: torch.ones(()) for name in ('training', 'again', 'through', "
    "'gradient', 'evaluation', 'evaluation again')}\n",
    "probe of tables gives facts": REPLACES + "import ttutor.exercises.transformer.tied_embeddings_probes as probes\n"
    "probes.observe = lambda *given: {'logits against products with the embeddings': 'equal'}\n",
    "probe of tables gives zeros": REPLACES + "import ttutor.exercises.transformer.tied_embeddings_probes as probes\n"
    "def gives(answer, size, hidden):\n"
    "    zeros = torch.zeros(size, hidden.shape[-1])\n"
    "    return {'five embeddings': zeros[None, :5], 'vectors': zeros, 'logits before': hidden @ zeros.T, "
    "'logits': hidden @ zeros.T, 'numbers that an optimiser is handed': zeros.numel(), "
    "'numbers that it may change': zeros.numel(), 'gradient': hidden, "
    "'steps': [[[zeros, zeros], [zeros, zeros]]] * 2}\n"
    "probes.observe = gives\n",
    "probe of batches gives verdicts": REPLACES + "import ttutor.exercises.training.plan_batches as probes\n"
    "probes._plan = lambda *given: {'every sentence has a place': True, 'no batch is over the budget': True}\n",
    "probe of batches gives one batch for all": REPLACES
    + "import ttutor.exercises.training.plan_batches as probes\nprobes._plan = lambda answer, lengths, b: [[0], [1]]\n",
    "the worker's own observing is replaced": REPLACES
    + "import worker.serve as serve\nserve.Worker._observe = lambda *given: ({'value': True, 'inputs': {'list': []}, "
    "'used': []}, b'')\n",
    "an empty class and a probe that never calls it": REPLACES
    + "replace('ttutor.exercises.running', gradients_of=lambda *given: None)\n",
}
FORBIDDEN = {
    "a default argument": _answer("return f(scores, dim)", "", "scores, dim=-1, f=torch.softmax"),
    "a table": _answer("return TABLE['x'](scores, dim)", "TABLE = {'x': torch.softmax}"),
    "an underscore": _answer("return torch._softmax(scores, dim, False)"),
    "a name in two parts": _answer("return getattr(torch, 'soft' + 'max')(scores, dim)"),
    "2,100 dead names before it": _answer(
        "return scores.softmax(dim)", "def dead(x):\n    return (" + ", ".join(f"x.a{n}" for n in range(2100)) + ")"
    ),
    "the operator itself": _answer("return torch.ops.aten._softmax.default(scores, dim, False)"),
    "partial": _answer("return F(scores, dim=dim)", "import functools\nF = functools.partial(torch.softmax)"),
    "a method caller": _answer("return C(scores)", "import operator\nC = operator.methodcaller('softmax', -1)"),
    "a module": _answer("return torch.nn.Softmax(dim)(scores)"),
    "text": _answer("return eval('torch.soft' 'max(scores, dim)')"),
    "the logarithm": _answer("return scores.log_softmax(dim).exp()"),
    "another name of it": _answer("return torch.special.softmax(scores, dim)"),
    "a thread": _answer(
        "found = []\nthread = threading.Thread(target=lambda: found.append(torch.softmax(scores, dim)))\n"
        "thread.start()\nthread.join()\nreturn found[0]",
        "import threading",
    ),
    "without the profiler": _answer("sys.setprofile(None)\nreturn torch.softmax(scores, dim)"),
}
MEMORY = {
    "memory in unnamed files": _answer(
        "for _ in range(200):\n    os.write(os.memfd_create('x'), bytes(1 << 26))\nreturn scores"
    ),
    "memory that is detached": _answer(
        "import ctypes\nlibc = ctypes.CDLL(None)\nfor n in range(200):\n"
        "    if libc.shmget(n + 9, 1 << 26, 0o1600) < 0: raise OSError\nreturn scores"
    ),
    "memory in sockets": _answer("import socket\npairs = [socket.socketpair() for _ in range(1000)]\nreturn scores"),
}
REPLIES = {
    "a number of 4,001 digits": _answer("return 10**4000"),
    "a number beyond floats": _answer("return 1 << 500"),
    "an array as a key": TO_ALL
    + _answer(
        "import safetensors.torch as st\nbody = st.save({'0': torch.zeros(2)})\n"
        "for n in range(60):\n    value = {'dict': [[{'tensor': 0, 'array': True}, 1]]}\n"
        "    say({'id': n, 'value': value, 'inputs': {'list': [None, None]}, 'used': []}, body)\nreturn scores"
    ),
    "300,000 keys": TO_ALL
    + _answer(
        "keys = ','.join(f'[{n},1]' for n in range(300000))\n"
        'for n in range(60):\n    say((\'{"id":%d,"value":{"dict":[\' % n + keys + \']}}\').encode())\nreturn scores'
    ),
    "a dict of a million keys": _answer("return {n: n for n in range(10**6)}"),
    "used as a number": TO_ALL
    + _answer("[say({'id': n, 'value': 1, 'inputs': {'list': []}, 'used': 7}) for n in range(60)]\nreturn scores"),
    "a tensor of another dtype that claims its shape": TO_ALL
    + _answer("[say({'id': n, 'value': {'tensor': 0}}, b'\\xff' * 64) for n in range(60)]\nreturn scores"),
    "parameters without end": _answer("return scores", "", ", ".join(f"a{n}=0" for n in range(2000))),
    "a text of quotes": _answer("return '\"' * 250000"),
    "a shape of empty axes": _answer("return torch.zeros(*[0] * 60)"),
    "a name that is a script": _answer("raise type('<script>', (Exception,), {})('x' * 10**7)"),
    "inputs in place of others": _answer("scores.resize_(0)\nreturn torch.softmax"),
}
TRACES = {
    "kills its judge": _answer(
        "for pid in range(1, 40000):\n    try: os.kill(pid, 9)\n    except OSError: pass\nreturn 1"
    ),
    "leaves a process": _answer("if os.fork() == 0:\n    os.setsid()\n    while True: pass\nreturn scores"),
    "writes where it can": _answer(
        "for place in ('/', '/tmp', '/dev/shm', '/var/tmp', '.'):\n"
        "    try: open(place + '/ttutor-was-here', 'w').write('x')\n    except OSError: pass\nreturn scores"
    ),
}
HOSTILE = {**PROBES, **FORBIDDEN, **MEMORY, **REPLIES, **TRACES}
