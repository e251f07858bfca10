"""What a model makes of a few validation sentences, seen again and again as it learns."""

from typing import TYPE_CHECKING

import torch

from ttutor.corpora.corpus import Pair
from ttutor.texts import printable
from ttutor.training.checkpoint import copy_into
from ttutor.training.records import add_record
from ttutor.translation.translator import Translator

if TYPE_CHECKING:
    from ttutor.training.trainer import Trainer

AT_FIRST = 3
"""How many sentences are shown unless the user asks for another number."""


class Samples:
    """Translates the same validation sentences at each validation, and keeps what came out in `samples.jsonl`.

    Greedy search under the averaged weights. Neither the weights nor the training's random numbers are touched: a
    training with samples ends, bit for bit, like one without.

    Args:
        trainer: the training to look at.
        count: how many sentences; fewer where there are not as many.
    """

    def __init__(self, trainer: "Trainer", count: int = AT_FIRST):
        self.pairs = spread_by_length(_short_enough(trainer), count)
        with torch.random.fork_rng(devices=[]):  # a new model draws its first weights, which are replaced each time
            self.translator = Translator.of(trainer)

    def take(self, trainer: "Trainer") -> dict:
        """Translate, keep and return the record of this step."""
        copy_into(dict(self.translator.model.named_parameters()), trainer.average.tensors, "the averaged weights")
        answers = self.translator.translate([source for source, _ in self.pairs], beam_size=1)
        samples = [
            {"source": source, "reference": reference, "translation": answer.text}
            for (source, reference), answer in zip(self.pairs, answers, strict=True)
        ]
        record = {"step": trainer.position.step, "best_step": trainer.position.best_step, "samples": samples}
        if trainer.writes:
            add_record(trainer.folder.samples, record)
        return record


def _short_enough(trainer: "Trainer") -> list[Pair]:
    """The validation pairs that the trainer itself validates on."""
    pairs, encode_all = trainer.corpus.validation, trainer.tokenizer.encode_all
    sides = [trainer.style.prepare(source) for source, _ in pairs], [target for _, target in pairs]
    lengths = [[len(ids) for ids in encode_all(side)] for side in sides]
    longest = map(max, *lengths)
    return [pair for pair, length in zip(pairs, longest, strict=True) if length <= trainer.recipe.max_tokens]


def spread_by_length(pairs: list[Pair], count: int) -> list[Pair]:
    """This many pairs, from short sources to long ones; always the same of the same pairs.

    >>> spread_by_length([("a b c", "3"), ("a", "1"), ("a b c d", "4"), ("a b", "2")], count=2)
    [('a b', '2'), ('a b c d', '4')]
    """
    by_length = sorted(pairs, key=lambda pair: (len(pair[0]), pair))
    count = min(count, len(by_length))
    return [by_length[(2 * number + 1) * len(by_length) // (2 * count)] for number in range(count)]


def shown(record: dict, with_source: bool) -> str:
    """A record in lines for a terminal; the sources and references need to be seen once.

    >>> record = {"step": 5, "samples": [{"source": "a dog", "reference": "un chien", "translation": "un"}]}
    >>> print(shown(record, with_source=True))
      1  source       a dog
         reference    un chien
         translation  un
    >>> print(shown(record, with_source=False))
      1  translation  un
    """
    names = ("source", "reference", "translation") if with_source else ("translation",)
    lines = []
    for number, sample in enumerate(record["samples"], start=1):
        for name in names:
            head = f"{number:3}" if name == names[0] else "   "
            lines.append(f"{head}  {name:11}  {printable(sample[name]) or '(nothing)'}")
    return "\n".join(lines)
