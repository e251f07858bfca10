"""Those that write one text token by token, each in a process of its own: ours, `transformers`, and llama.cpp.

A process loads the model once, says "ready", and then answers each line (a number of tokens) by one line of JSON: how
long writing so many took once the prompt was read, by its own processor time and by the clock, and what it wrote. None
of them stops at an end mark.
"""

import dataclasses
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

QUESTION = "Tell me a long story about a fox who wanted to learn how to read."
BENCHMARKS = Path(__file__).resolve().parent
Write = Callable[[], Iterator[int]]
"""Reads the prompt, then writes without end: the id of each token."""


def prompt() -> str:
    """What all of them read: the question as the model's own template writes it."""
    from ttutor.pretrained import load

    template = load("smollm2").template
    assert template is not None
    return template.render([{"role": "user", "content": QUESTION}])


def ours(eight_bits: bool) -> Write:
    """What `ttutor chat` runs, which it does with eight bits."""
    from ttutor.pretrained import Conversation, load

    endless = dataclasses.replace(load("smollm2"), end_ids=())

    def write() -> Iterator[int]:
        seen: list[int] = []

        def choose(log_probabilities, rows):  # the best, as always, and noted
            best = log_probabilities.argmax(dim=-1)
            seen.append(int(best))
            return best

        conversation = Conversation(endless, choose=choose, longest_answer=2000, eight_bits=eight_bits)
        for _ in conversation.answer(QUESTION):
            if seen:
                yield seen[-1]

    return write


def transformers(use_bf16: bool) -> Write:
    """Its Llama with our weights, in the loop that its documentation shows: one call a token, with its cache."""
    import torch
    import transformers as theirs
    from transformers import LlamaConfig, LlamaForCausalLM

    from ttutor.interop import to_huggingface
    from ttutor.pretrained import load

    theirs.logging.set_verbosity_error()
    chat = load("smollm2")
    config, tensors = to_huggingface(chat.model)
    model = LlamaForCausalLM(LlamaConfig(**config)).eval()
    model.load_state_dict(tensors, strict=False)  # its output table is tied
    model = model.to(torch.bfloat16) if use_bf16 else model
    ids = torch.tensor([chat.tokenizer.encode(prompt(), add_special_tokens=False).ids])

    def write() -> Iterator[int]:
        cache, given = theirs.DynamicCache(config=model.config), ids
        while True:
            with torch.inference_mode():
                logits = model(given, past_key_values=cache, use_cache=True, logits_to_keep=1).logits
            given = logits[:, -1].argmax(dim=-1, keepdim=True)
            yield int(given)

    return write


MAKERS: dict[str, Callable[[], Write]] = {
    "ttutor": lambda: ours(eight_bits=False),
    "ttutor, 8 bits": lambda: ours(eight_bits=True),
    "transformers": lambda: transformers(use_bf16=False),
    "transformers, bf16": lambda: transformers(use_bf16=True),
}
LLAMA = "llama.cpp"
NAMES = (*MAKERS, LLAMA)


def serve(name: str, threads: int) -> None:
    """Load one of Python's, then answer."""
    import torch

    torch.set_num_threads(threads)
    write = MAKERS[name]()
    print("ready", flush=True)
    for line in sys.stdin:
        tokens = write()
        found = [next(tokens)]
        cpu, wall = time.process_time(), time.perf_counter()
        found += [next(tokens) for _ in range(int(line))]
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        tokens.close()
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        peak = int(status.split("VmHWM:")[1].split()[0]) // 1000
        answer = {"tokens": len(found) - 1, "cpu": cpu, "wall": wall, "ids": found, "peak_megabytes": peak}
        print(json.dumps(answer), flush=True)


class Peer:
    """One of them in its process.

    Args:
        name: one of `NAMES`.
        threads: how many it may use.
        llama: the folder where node-llama-cpp is installed.
    """

    def __init__(self, name: str, threads: int, llama: Path) -> None:
        command = [
            sys.executable,
            "-W",
            "ignore",
            str(BENCHMARKS / "chat.py"),
            "--serve",
            name,
            "--threads",
            str(threads),
        ]
        if name == LLAMA:
            from ttutor.pretrained.catalogue import SMOLLM2

            file = SMOLLM2.path(*SMOLLM2.files)
            script = BENCHMARKS / "_chat_llama.mjs"
            command = ["node", str(script), str(llama.resolve()), str(file), str(threads), prompt()]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._line() == "ready"

    def write(self, n_tokens: int) -> dict:
        """Write so many tokens after the first, and say how long it took."""
        assert self.process.stdin is not None
        print(n_tokens, file=self.process.stdin, flush=True)
        return json.loads(self._line())

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        if not line:
            raise RuntimeError(f"{' '.join(self.process.args[:6])} has ended")
        return line

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
