"""What `ttutor gpt` learns of a page and of a text as long as a book, by size, and after how much of one core.

The page is the beginning of *Alice's Adventures in Wonderland*, in the public domain; the long text is the 29,000
English captions that Multi30k trains on (``ttutor fetch multi30k``), 1.8 million letters. One seed each. Ten times in a
training the loss on the held-out twentieth is measured, and the weights with the lowest are kept, as the command does.
The steps of the long text are what each size does in about eight minutes of one core.

Stored for each size: those losses by step, the best with the processor's seconds until then, and of 600 tokens that the
kept weights write, the beginning, the share of words that occur in the text, and the share of five words in a row that
do. Every run has a folder in ``_build/language-model-sizes``: after Ctrl-C the script goes on where it stopped, and
the record's minutes are those of the last call. About twenty-five minutes of one core.
"""

import hashlib
import json
import time
from pathlib import Path

import torch

from experiments import _record
from ttutor.corpora.corpus import read_lines
from ttutor.corpora.datasets import find_dataset
from ttutor.files import write_file
from ttutor.language_model import TextTraining, continue_text
from ttutor.training.progress import Stopped

NAME, SEED = "language_model_sizes", 0
STEPS = {"page": {"tiny": 200, "small": 200}, "captions": {"tiny": 400, "small": 250, "medium": 120}}
N_WRITTEN, N_SHOWN, IN_A_ROW = 600, 60, 5
ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "_build" / "language-model-sizes"


def rows_of_words(words: list[str], length: int) -> set[tuple[str, ...]]:
    return {tuple(words[start : start + length]) for start in range(len(words) - length + 1)}


def share_known(written: list[str], read: list[str], length: int) -> float:
    """The share of the rows of words written that stand somewhere in what was read."""
    known = rows_of_words(read, length)
    rows = [tuple(written[start : start + length]) for start in range(len(written) - length + 1)]
    return round(sum(row in known for row in rows) / len(rows), 3)


def read(name: str) -> str:
    """Return the page, or the captions, one a line."""
    if name == "page":
        return (ROOT / "experiments" / "recurrence_book.txt").read_text(encoding="utf-8")
    english, _ = find_dataset("multi30k", "en-de")["train"]
    return "\n".join(read_lines(english)) + "\n"


def train(name: str, size: str, steps: int) -> dict:
    """One run, begun or gone on with, and what it learned."""
    text, folder = read(name), FOLDER / f"{name}-{size}-{steps}"
    training = TextTraining(text, folder, size=size, steps=steps, seed=SEED)
    log, so_far = folder / "looks.json", {"looks": [], "seconds": 0.0}
    if (folder / "checkpoints").exists():
        training.resume()
        so_far = json.loads(log.read_text(encoding="utf-8"))
    looks, started = so_far["looks"], time.process_time() - so_far["seconds"]

    def note() -> float:
        seconds = round(time.process_time() - started, 1)
        write_file(log, json.dumps({"looks": looks, "seconds": seconds}).encode())
        return seconds

    def keep(training: TextTraining, loss: float) -> None:
        bits = round(training.bits_per_byte(loss), 3)
        looks.append({"step": training.step, "loss": round(loss, 3), "bits": bits, "seconds": note()})
        note()
        print(name, size, looks[-1], flush=True)

    try:
        training.run(quiet=True, on_look=keep)
    except Stopped:
        note()
        raise
    model = training.result()
    best = min(looks, key=lambda look: look["loss"])
    prompt = text[: text.index(" ", 12)]
    written = prompt + "".join(continue_text(model, prompt, max_new_tokens=N_WRITTEN, seed=SEED))
    words, known = written.split()[:-1], text.split()  # the last word may be cut off
    shown = prompt + "".join(continue_text(model, prompt, max_new_tokens=N_SHOWN, seed=SEED))
    return {
        "text": name,
        "size": size,
        "letters": len(text),
        "text_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "vocabulary": model.tokenizer.vocab_size,
        "parameters": sum(one.numel() for one in model.model.parameters()),
        "steps": steps,
        "loss_by_frequency": round(training.loss_by_frequency(), 3),
        "losses": {look["step"]: look["loss"] for look in looks},
        "best": best,
        "words_known": share_known(words, known, 1),
        "rows_known": share_known(words, known, IN_A_ROW),
        "sample": shown,
    }


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    runs = [train(name, size, steps) for name, sizes in STEPS.items() for size, steps in sizes.items()]
    _record.write(NAME, {"in_a_row": IN_A_ROW, "runs": runs}, seeds=[SEED], started=started)


if __name__ == "__main__":
    main()
