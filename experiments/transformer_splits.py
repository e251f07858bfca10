"""What a translator that is right at random is right about: one verb never moved, three nouns never moved, new pairs.

The chapter's grammar: 1,350 English sentences and their German, in which an adverb at the beginning moves the verb to
the second place. From the sentences to learn from we remove one kind altogether, and a fifth of the others at random.
The kinds: one verb after an adverb; three nouns after an adverb; eighteen pairs of a noun and a verb. Seed s removes
verb s, nouns s, s + 3 and s + 6 or the pairs whose numbers add up to s modulo 3, so that no choice is ours. A model is
the chapter's: width 32, two layers in each stack, 160 steps of 32 sentences, the rate climbing for 30 steps and falling
in a line. Recorded are the shares of sentences written without a mistake, at random and of the removed kind, and how
many of the latter have a verb in the second place, right or wrong. Arms: the norm after or before the sublayers, and
PyTorch's first weights for all linear maps; five rates; three times the steps. Beside them stands a translation word by
word, which knows all articles and leaves the order as it is. About nine minutes of one core.
"""

import itertools

import torch
from torch import Tensor, nn

from experiments import _record
from ttutor.generation import greedy_search
from ttutor.tokenization import BOS_ID, EOS_ID, PAD_ID, WordTokenizer
from ttutor.training.fit import fit
from ttutor.transformer import Transformer, TransformerConfig

SEEDS = [0, 1, 2, 3, 4]
STEPS, LONGER, WARMUP, BATCH = 160, 480, 30, 32
RATES, MIDDLE = [0.002, 0.004, 0.008, 0.016, 0.032], [0.004, 0.008, 0.016]
VERB, NOUNS, PAIRS = "one verb", "three nouns", "new pairs"
POST, PRE, TORCH = "post-norm", "pre-norm", "post-norm, PyTorch's first weights"

ANIMALS = [
    ("cat", "die", "Katze"),
    ("dog", "der", "Hund"),
    ("horse", "das", "Pferd"),
    ("cow", "die", "Kuh"),
    ("bird", "der", "Vogel"),
    ("pig", "das", "Schwein"),
    ("goat", "die", "Ziege"),
    ("fish", "der", "Fisch"),
    ("sheep", "das", "Schaf"),
]
VERBS = [
    ("sat", "saß"),
    ("slept", "schlief"),
    ("ran", "lief"),
    ("ate", "fraß"),
    ("stood", "stand"),
    ("drank", "trank"),
]
ADVERBS = [("", ""), ("yesterday", "gestern"), ("today", "heute"), ("here", "hier"), ("there", "dort")]
ADJECTIVES = [("", ""), ("old", "alte"), ("small", "kleine"), ("red", "rote"), ("big", "große")]
PLACES = list(itertools.product(range(9), range(6), range(5), range(5)))
"""Of each sentence: the numbers of its noun, verb, adverb and adjective."""


def sentence(place: tuple[int, int, int, int], *, moves: bool = True) -> tuple[str, str]:
    """English and German; without ``moves`` the German keeps the order of the English."""
    (noun, article, nomen), (verb, zeitwort) = ANIMALS[place[0]], VERBS[place[1]]
    (when, wann), (adjective, beiwort) = ADVERBS[place[2]], ADJECTIVES[place[3]]
    subject = [article, beiwort, nomen]
    german = [wann, zeitwort, *subject] if wann and moves else [wann, *subject, zeitwort]
    return " ".join(filter(None, [when, "the", adjective, noun, verb])), " ".join(filter(None, german))


TEXTS = [sentence(place) for place in PLACES]
WORDS = WordTokenizer.train([text for pair in TEXTS for text in pair])


def padded(rows: list[list[int]]) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD_ID] * (longest - len(row)) for row in rows])


SOURCES = padded([WORDS.encode(english) + [EOS_ID] for english, _ in TEXTS])
TARGETS = padded([[BOS_ID, *WORDS.encode(german), EOS_ID] for _, german in TEXTS])


def split(kind: str, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Rows to learn from, rows held out at random, and all rows of the removed kind."""
    removed = torch.tensor(
        [
            {
                VERB: verb == seed % 6 and adverb > 0,
                NOUNS: noun % 3 == seed % 3 and adverb > 0,
                PAIRS: (noun + verb) % 3 == seed % 3,
            }[kind]
            for noun, verb, adverb, _ in PLACES
        ]
    )
    (others,) = (~removed).nonzero(as_tuple=True)
    others = others[torch.randperm(len(others), generator=torch.Generator().manual_seed(seed))]
    n_held_out = len(others) // 5
    (kind_rows,) = removed.nonzero(as_tuple=True)
    return others[n_held_out:], others[:n_held_out], kind_rows


def next_token_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    source, target = batch
    logits = model(source, target[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD_ID)


def answers(model: Transformer, rows: Tensor) -> list[str]:
    found = greedy_search(model, SOURCES[rows], max_new_tokens=7, bos_id=BOS_ID, eos_id=EOS_ID)
    return [WORDS.decode(hypothesis.token_ids) for hypothesis in found]


def share_right(written: list[str], rows: Tensor) -> float:
    right = [answer == TEXTS[row][1] for answer, row in zip(written, rows.tolist(), strict=True)]
    return round(sum(right) / len(right), 4)


def trained(rows: Tensor, seed: int, top_rate: float, arm: str, steps: int) -> Transformer:
    torch.manual_seed(seed)
    sizes = {"d_model": 32, "n_heads": 4, "n_layers": 2, "d_ff": 64, "dropout": 0.0, "max_len": 16}
    norm = "pre" if arm == PRE else "post"
    model = Transformer(TransformerConfig(vocab_size=WORDS.vocab_size, norm=norm, **sizes))
    if arm == TORCH:
        for stack in (model.encoder, model.decoder):
            for module in stack.modules():
                if isinstance(module, nn.Linear):
                    module.reset_parameters()
    batches = [rows[torch.randperm(len(rows))[:BATCH]] for _ in range(steps)]
    fit(
        model,
        [(SOURCES[batch], TARGETS[batch]) for batch in batches],
        next_token_loss,
        steps=steps,
        learning_rate=lambda step: top_rate * min(1, step / WARMUP) * (1 - (step - 1) / steps),
    )
    return model


def measured(kind: str, arm: str, top_rate: float, steps: int) -> dict:
    """All seeds of one arm at one rate."""
    shares: dict[str, list[float]] = {"learned_from": [], "at_random": [], "removed_kind": [], "verb_second": []}
    verbs = {german for _, german in VERBS}
    for seed in SEEDS:
        train_rows, random_rows, kind_rows = split(kind, seed)
        model = trained(train_rows, seed, top_rate, arm, steps)
        written = answers(model, kind_rows)
        second = [len(answer.split()) > 1 and answer.split()[1] in verbs for answer in written]
        shares["learned_from"].append(share_right(answers(model, train_rows[:200]), train_rows[:200]))
        shares["at_random"].append(share_right(answers(model, random_rows), random_rows))
        shares["removed_kind"].append(share_right(written, kind_rows))
        shares["verb_second"].append(round(sum(second) / len(second), 4))
    print(kind, arm, top_rate, steps, shares, flush=True)
    return {"kind": kind, "arm": arm, "learning_rate": top_rate, "steps": steps, **shares}


def word_by_word(kind: str) -> dict:
    """The same shares for a translation that knows each word and each article and never moves one."""
    shares: dict[str, list[float]] = {"at_random": [], "removed_kind": []}
    for seed in SEEDS:
        _, random_rows, kind_rows = split(kind, seed)
        for name, rows in (("at_random", random_rows), ("removed_kind", kind_rows)):
            written = [sentence(PLACES[row], moves=False)[1] for row in rows.tolist()]
            shares[name].append(share_right(written, rows))
    return {"kind": kind, **shares}


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    runs = [measured(VERB, arm, rate, STEPS) for arm in (POST, PRE, TORCH) for rate in RATES]
    runs += [measured(VERB, arm, rate, LONGER) for arm in (POST, PRE) for rate in MIDDLE[:2]]
    runs += [measured(kind, POST, rate, STEPS) for kind in (NOUNS, PAIRS) for rate in MIDDLE]
    _record.write(
        "transformer_splits",
        {
            "settings": {"steps": STEPS, "longer": LONGER, "warmup": WARMUP, "batch": BATCH, "dtype": "float32"},
            "runs": runs,
            "word_by_word": [word_by_word(kind) for kind in (VERB, NOUNS, PAIRS)],
        },
        seeds=SEEDS,
        started=started,
    )


if __name__ == "__main__":
    main()
