"""A translator must begin with a given German article: do the next words follow it, or the source?

The translator that ships with the package (English to German, captions) translates "A small dog is running in the
park." and its like: ten adjectives, nine nouns of the three German genders, three endings of the sentence. Each is
translated freely, and with its first word forced to Ein, Eine, Der, Die and Das. The ending of the adjective tells what
it follows: after *ein* it is -er or -es, by gender; after the others -e. The adjective may be another than in the free
translation; where there is none, the sentence counts as "other". Only sentences whose free translation has the expected
article and an adjective with the expected ending are used.

Attacks: each ending of a sentence alone; each adjective alone; the probability of the endings in place of the likeliest
word; and an article that agrees, as a control. Two minutes, one core.
"""

from collections import Counter, defaultdict
from itertools import product

import torch

from experiments import _record
from ttutor.translation.packed import load_packed
from ttutor.translation.translator import Translator
from ttutor.translation.what_if import what_if

ADJECTIVES = ["small", "young", "old", "big", "black", "white", "brown", "happy", "blond", "tall"]
NOUNS = {
    "masculine": ["dog", "man", "boy"],
    "feminine": ["woman", "cat", "lady"],
    "neuter": ["girl", "child", "baby"],
}
N_PIECES = 8
"""So many pieces of a translation are enough for its article, its adjective and its noun."""
RESTS = ["is running in the park.", "is sitting on a bench.", "jumps into the water."]
OWN = {"masculine": ("Ein", "er"), "feminine": ("Eine", "e"), "neuter": ("Ein", "es")}
"""Of each gender: the article of a free translation, and the ending of the adjective after it."""
FORCED = {"Ein": ("er", "es"), "Eine": ("e",), "Der": ("e",), "Die": ("e",), "Das": ("e",)}
"""After each article: the endings that German has there, for a noun of any gender in the singular."""


def written(translator: Translator, sentence: str, first: str | None = None) -> list[str]:
    """The first words of a translation."""
    beginning = translator.tokenizer.encode(first)[:1] if first else []
    steps = what_if(translator, sentence, beginning=beginning, longest=N_PIECES).steps
    return translator.tokenizer.decode([step.token_id for step in steps]).split()


def ending(word: str) -> str:
    """The ending of an adjective: er, es, en, e, or nothing of these."""
    return next((end for end in ("er", "es", "en", "e") if word.endswith(end)), "")


def noun_of(words: list[str]) -> str:
    """The first noun: in German it begins with a capital."""
    return next((word.strip(".,") for word in words[1:] if word[0].isupper()), "")


def rows_of(translator: Translator) -> tuple[list[dict], int]:
    """One row for each usable sentence and forced article, and how many sentences were tried."""
    rows, tried = [], 0
    for gender, nouns in NOUNS.items():
        article, own_ending = OWN[gender]
        for noun, adjective, rest in product(nouns, ADJECTIVES, RESTS):
            sentence = f"A {adjective} {noun} {rest}"
            tried += 1
            free = written(translator, sentence)
            if len(free) < 3 or free[0] != article or ending(free[1]) != own_ending or not free[2][0].isupper():
                continue
            for first in FORCED:
                words = written(translator, sentence, first)
                usable = len(words) > 2 and words[0] == first and words[1][0].islower() and words[2][0].isupper()
                rows.append(
                    {
                        "gender": gender, "noun": noun, "adjective": adjective, "rest": rest, "first": first,
                        "ending": (ending(words[1]) if usable else "") or "other",
                        "noun stays": noun_of(words) == noun_of(free),
                        "free": " ".join(free), "forced": " ".join(words),
                    }
                )  # fmt: skip
    return rows, tried


def follows(row: dict) -> bool:
    return row["ending"] in FORCED[row["first"]]


def stays(row: dict) -> bool:
    return row["ending"] == OWN[row["gender"]][1]


def tally(rows: list[dict]) -> dict:
    """How many adjectives follow the written article, how many keep the source's ending, and how many nouns stay."""
    return {
        "of": len(rows),
        "follow": sum(map(follows, rows)),
        "keep": sum(map(stays, rows)),
        "noun stays": sum(row["noun stays"] for row in rows),
        "endings": dict(Counter(row["ending"] for row in rows).most_common()),
    }


def clash(row: dict) -> bool:
    """Whether the article and the source ask for different endings."""
    return OWN[row["gender"]][1] not in FORCED[row["first"]]


def by(rows: list[dict], *names: str) -> dict[str, list[dict]]:
    groups: dict[str, list[dict]] = defaultdict(list)
    for row in rows:
        groups[", ".join(row[name] for name in names)].append(row)
    return dict(groups)


@torch.no_grad()
def probabilities(translator: Translator, rows: list[dict]) -> dict[str, float]:
    """By gender and article: the mean probability of a word that follows the article, among the two that fit."""
    found: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row["rest"] != RESTS[0] or not clash(row):
            continue
        own_ending = OWN[row["gender"]][1]
        stem = row["free"].split()[1].removesuffix(own_ending)
        encode = translator.tokenizer.encode
        candidates = {end: encode(f"{row['first']} {stem}{end}") for end in ("e", "er", "es")}
        if any(len(ids) != 2 for ids in candidates.values()):  # words of one piece alone can be compared in one step
            continue
        beginning = encode(row["first"])[:1]
        sentence = f"A {row['adjective']} {row['noun']} {row['rest']}"
        chances = what_if(translator, sentence, beginning=beginning, longest=2).logits[1].softmax(dim=-1)
        of = {end: chances[ids[1]].item() for end, ids in candidates.items()}
        follow = sum(of[end] for end in FORCED[row["first"]] if end in of)
        found[f"{row['gender']}, {row['first']}"].append(follow / sum(of.values()))
    return {name: round(sum(values) / len(values), 3) for name, values in found.items()}


def attacks(translator: Translator, rows: list[dict]) -> list[str]:
    """What was tried to refute the page's sentences, one line each."""
    lines = []
    for name in ("rest", "noun", "adjective"):
        for value, group in by([row for row in rows if clash(row)], name).items():
            shares = []
            for first, one in by(group, "first").items():
                found = tally(one)
                shares.append(f"{first} {found['follow']} of {found['of']}")
            lines.append(f"{name} {value}: follows {', '.join(shares)}")
    lines.append(f"mean share of the probability that follows: {probabilities(translator, rows)}")
    agreeing = tally([row for row in rows if row["first"] == OWN[row["gender"]][0]])
    lines.append(f"control, the article that the model itself writes: {agreeing['follow']} of {agreeing['of']} follow")
    return lines


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    translator = load_packed().translator
    rows, tried = rows_of(translator)
    table = {name: tally(group) for name, group in by(rows, "gender", "first").items()}
    for name, found in table.items():
        print(name, found, flush=True)
    examples = [[row["free"], row["forced"]] for row in rows if row["rest"] == RESTS[0] and row["adjective"] == "small"]
    _record.write(
        "decoder_forced",
        {
            "tried": tried,
            "used": len(rows) // len(FORCED),
            "table": table,
            "adjectives": {
                name: {first: tally(one) for first, one in by(group, "first").items()}
                for name, group in by([row for row in rows if clash(row)], "adjective").items()
            },
            "examples": examples,
            "others": [row["forced"] for row in rows if row["ending"] == "other"],
            "attacks": attacks(translator, rows),
        },
        seeds=[0],
        started=started,
    )


if __name__ == "__main__":
    main()
