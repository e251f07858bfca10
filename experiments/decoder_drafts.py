"""Does speculative decoding draw what the model would draw? Sentence frequencies, with right and with wrong rules.

Three decoders of chapter 6, trained on the known language, write with the help of a draft: a table of pairs of words,
or equal chances for all words. Since every sentence's probability under the model can be computed, the frequencies of
1,500 written texts can be compared with what they should be. The 21,960 sentences are put into 20 groups of nearly
equal probability under the model, and all ungrammatical texts into one more; chi-squared compares the counts.
Its mean is 20 if the texts are drawn by the model, as for plain sampling, the control.

Two wrong rules, with equal chances, show what the test can see: after a refusal a word is drawn by the model's own
distribution; and a proposal is kept with the probability that the model gives it, however likely the draft made it.
Another grouping, at random in place of by probability, attacks the result. Three minutes, one core.
"""

import math

import torch

from experiments import _record
from experiments.decoder_known import Writer, at_all_places, trained
from ttutor.corpora.known_language import BOS, EOS, KnownLanguage

SEEDS, N_TEXTS, N_GROUPS = [0, 1, 2], 1500, 20

language = KnownLanguage()


def drawn(shares, generator):
    return int(torch.multinomial(shares, 1, generator=generator))


@torch.no_grad()
def one_pass(model, draft, text, generator, n_drafted=3):
    # the words that one pass of the model adds to a text
    guesses = []
    for _ in range(n_drafted):
        guesses.append(drawn(draft[(text + guesses)[-1]], generator))
    chances = model(torch.tensor([text + guesses]))[0].softmax(dim=-1)
    chances = chances[len(text) - 1 :]  # n_drafted + 1 rows: for each guess, and after
    added = []
    for guess, p in zip(guesses, chances, strict=False):
        q = draft[(text + added)[-1]]
        if torch.rand(1, generator=generator) >= p[guess] / q[guess]:  # refused
            return [*added, drawn((p - q).clamp(min=0), generator)]
        added.append(guess)
    return [*added, drawn(chances[-1], generator)]  # all kept: one word more


def speculate(model, draft, generator):
    text, passes = [BOS], 0
    while EOS not in text and len(text) < 10:
        text += one_pass(model, draft, text, generator)
        passes += 1
    end = text.index(EOS) + 1 if EOS in text else 10  # what follows <eos> is cut off
    return text[:end], passes


@torch.no_grad()
def wrong_pass(model, draft, text, generator, *, by_own: bool):
    """`one_pass` with one of two wrong rules."""
    guesses: list[int] = []
    for _ in range(3):
        guesses.append(drawn(draft[(text + guesses)[-1]], generator))
    chances = model(torch.tensor([text + guesses]))[0].softmax(dim=-1)[len(text) - 1 :]
    added: list[int] = []
    for guess, p in zip(guesses, chances, strict=False):
        q = draft[(text + added)[-1]]
        kept = p[guess] if by_own else p[guess] / q[guess]
        if torch.rand(1, generator=generator) >= kept:
            return [*added, drawn((p - q).clamp(min=0) if by_own else p, generator)]
        added.append(guess)
    return [*added, drawn(chances[-1], generator)]


def wrongly(model, draft, generator, *, by_own: bool) -> tuple[list[int], int]:
    text, passes = [BOS], 0
    while EOS not in text and len(text) < 10:
        text += wrong_pass(model, draft, text, generator, by_own=by_own)
        passes += 1
    return text[: text.index(EOS) + 1 if EOS in text else 10], passes


def pairs_of_words() -> torch.Tensor:
    """How often each word followed each word in 500 sentences, no pair impossible."""
    n_words = len(language.vocabulary)
    pairs = torch.full((n_words, n_words), 0.1)
    for text in language.draw(500, torch.Generator().manual_seed(1)):
        pairs.index_put_((text[:-1], text[1:]), torch.tensor(1.0), accumulate=True)
    return pairs / pairs.sum(dim=-1, keepdim=True)


def groups(shares: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """A group of each sentence: the sentences in some order, cut into groups of nearly equal probability."""
    found = torch.empty(len(shares), dtype=torch.long)
    found[order] = (shares[order].cumsum(dim=0) / shares.sum() * N_GROUPS).ceil().long().clamp(1, N_GROUPS) - 1
    return found


def plainly(model: Writer, n_texts: int, generator: torch.Generator) -> list[tuple[list[int], int]]:
    """Ordinary sampling, a pass for each token."""
    texts = torch.full((n_texts, 1), BOS)
    with torch.no_grad():
        while texts.shape[1] < 10:
            chances = model(texts)[:, -1].softmax(dim=-1)
            texts = torch.cat([texts, torch.multinomial(chances, 1, generator=generator)], dim=1)
    made = [text[: text.index(EOS) + 1] if EOS in text else text for text in texts.tolist()]
    return [(text, len(text) - 1) for text in made]


def main() -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    started = _record.start()
    pairs = pairs_of_words()
    equal = torch.full_like(pairs, 1 / len(pairs))
    drafts = {"pairs of words": pairs, "equal chances": equal}
    number = {tuple(text[: text.index(EOS) + 1]): at for at, text in enumerate(map(list, language.texts.tolist()))}
    ways = {
        "plain sampling": lambda model, generator: plainly(model, N_TEXTS, generator),
        **{
            f"right rule, {name}": lambda model, generator, draft=draft: [
                speculate(model, draft, generator) for _ in range(N_TEXTS)
            ]
            for name, draft in drafts.items()
        },
        **{
            f"wrong rule, {name}": lambda model, generator, by_own=by_own: [
                wrongly(model, equal, generator, by_own=by_own) for _ in range(N_TEXTS)
            ]
            for name, by_own in (("refused: drawn by p", False), ("kept by p alone", True))
        },
    }
    rows: dict[str, list[dict]] = {name: [] for name in ways}
    for seed in SEEDS:
        model = trained(seed)
        shares = language.log_probabilities(at_all_places(model)).exp()
        by_size = groups(shares, shares.argsort())
        by_chance = groups(shares, torch.randperm(len(shares), generator=torch.Generator().manual_seed(seed)))
        for name, way in ways.items():
            made = way(model, torch.Generator().manual_seed(10 + seed))
            found = [number.get(tuple(text), -1) for text, _ in made]
            row = {
                "seed": seed,
                "grammatical": round(sum(at >= 0 for at in found) / N_TEXTS, 4),
                "expected": round(shares.sum().item(), 4),
                "tokens a pass": round(sum(len(text) - 1 for text, _ in made) / sum(n for _, n in made), 3),
            }
            for what, grouping in (("chi-squared", by_size), ("chi-squared, groups by chance", by_chance)):
                counts, wanted = torch.zeros(N_GROUPS + 1), torch.zeros(N_GROUPS + 1)
                for at in found:
                    counts[grouping[at] if at >= 0 else N_GROUPS] += 1
                wanted[:N_GROUPS].index_add_(0, grouping, shares)
                wanted[N_GROUPS] = 1 - shares.sum()
                wanted *= N_TEXTS
                row[what] = round(((counts - wanted) ** 2 / wanted).sum().item(), 1)
            rows[name].append(row)
            print(name, row, flush=True)
    alone = language.log_probabilities(pairs.log()[language.texts[:, :-1]]).exp().sum().item()
    spread = math.sqrt(2 * N_GROUPS * len(SEEDS))
    total = {
        name: [round(sum(row[what] for row in of)) for what in ("chi-squared", "chi-squared, groups by chance")]
        for name, of in rows.items()
    }
    _record.write(
        "decoder_drafts",
        {
            "n_texts": N_TEXTS,
            "degrees of freedom": N_GROUPS,
            "rows": rows,
            "grammatical, pairs alone": round(alone, 4),
            "attacks": [
                f"expected over {len(SEEDS)} models: {N_GROUPS * len(SEEDS)} with a standard deviation of {spread:.0f}",
                *(f"{name}: chi-squared {a}, with groups by chance {b}" for name, (a, b) in total.items()),
            ],
        },
        seeds=SEEDS,
        started=started,
    )


if __name__ == "__main__":
    main()
