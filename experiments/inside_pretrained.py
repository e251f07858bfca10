"""The number of a verb in a published language model: read, exchanged, and pushed, as in the toys of chapter 12.

Opens SmolLM2-135M-Instruct (`ttutor fetch smollm2`) by our own classes. Sentences begin "The keys near the cabinet",
of nouns that are one token in both numbers, so that places match. Log odds are those of " are", " were", " have" and
" do" against " is", " was", " has" and " does" as the next word. Stored are: how often the odds agree with the first
noun; the same as the lens reads it after each layer; the share of the effect of one vector, exchanged between "keys"
and "key", by layer and token, for each of 24 pairs; and directions of several probes for the subject's number: how
well they read new nouns' sentences, their cosine with the difference of means, and the share of verbs they turn.

Under ``attacks``: the same exchange with 24 pairs of other nouns and verbs' odds of "is" and "are" alone; and a
control in which the exchanged vector comes from another noun of the *same* number.
"""

import torch
from torch import Tensor
from torch.nn import functional

from experiments import _record, inside_seeds
from ttutor.inside import capture, patch
from ttutor.pretrained import Pretrained, load

SEED, N_PAIRS = 0, 24
DEPTHS = (0, 12, 18, 22, 24, 25, 26, 27, 28, 30)
FEW_DEPTHS = (12, 24, 27)
PUSHED = (21, 27, 29)
TOKENS = ("The", "keys", "near", "the", "cabinet")
PREPOSITIONS = ("near", "behind", "beside", "above")
PLURAL, SINGULAR = (" are", " were", " have", " do"), (" is", " was", " has", " does")
NOUNS = (
    "key cabinet dog boy girl king farmer teacher doctor tree house car letter table bird horse student book artist "
    "picture window road bridge flower guard driver cat lawyer writer player singer pilot"
).split()
OTHER_NOUNS = (
    "sailor soldier actor author cousin friend sister brother lamp door garden wall boat ship train ball chair bottle "
    "cup plate clock tower shop nurse worker manager tiger lion monkey rabbit coin pen"
).split()

Pair = tuple[str, str, str]


def pairs_of(nouns: list[str], n: int, seed: int) -> list[Pair]:
    """First noun, preposition and second noun, drawn by chance."""
    generator = torch.Generator().manual_seed(seed)

    def draw(words) -> list[str]:
        return [words[at] for at in torch.randint(len(words), (2 * n,), generator=generator).tolist()]

    drawn = zip(draw(nouns), draw(PREPOSITIONS), draw(nouns), strict=True)
    return [one for one in drawn if one[0] != one[2]][:n]


class Subject:
    """The model, asked for the number of the next verb."""

    def __init__(self, chat: Pretrained, plural: tuple[str, ...] = PLURAL, singular: tuple[str, ...] = SINGULAR):
        self.chat = chat
        self.verbs = [[chat.tokenizer.encode(word).ids[0] for word in words] for words in (plural, singular)]

    def ids(self, pairs: list[Pair], first: list[bool], second: list[bool]) -> Tensor:
        """Sentences whose nouns are plural where it says so."""
        rows = [
            f"The {a}{'s' * x} {how} the {b}{'s' * y}" for (a, how, b), x, y in zip(pairs, first, second, strict=True)
        ]
        return torch.cat([self.chat.ids(row) for row in rows])

    def odds(self, logits: Tensor) -> Tensor:
        """Log odds of a plural verb."""
        plural, singular = (logits[..., words].logsumexp(dim=-1) for words in self.verbs)
        return plural - singular

    def __call__(self, ids: Tensor) -> Tensor:
        """Log odds after each sentence."""
        return self.odds(self.chat.model(ids)[:, -1])

    def streams(self, ids: Tensor) -> Tensor:
        """The stream after 0, 1, ..., 30 layers: depths sentences tokens d_model."""
        with capture(self.chat.model, "layers.0.input", "layers.*") as seen:
            self.chat.model(ids)
        return seen.stack()

    def name(self, depth: int) -> str:
        """Where the stream after so many layers can be replaced."""
        return f"layers.{depth - 1}" if depth else "layers.0.input"

    def exchanged(self, source: Tensor, target: Tensor, depths: tuple[int, ...], tokens: list[int]) -> Tensor:
        """The target's odds with one vector of the source: depths tokens sentences."""
        streams, found = self.streams(source), []
        for depth in depths:

            def put(stream: Tensor, depth: int, token: int) -> Tensor:
                stream = stream.clone()
                stream[:, token] = streams[depth][:, token]
                return stream

            for token in tokens:
                with patch(self.chat.model, {self.name(depth): lambda x, d=depth, t=token: put(x, d, t)}):
                    found.append(self(target))
        return torch.stack(found).view(len(depths), len(tokens), -1)


def both(n: int) -> list[bool]:
    """Every second one is plural."""
    return [bool(i % 2) for i in range(n)]


def effect(subject: Subject, pairs: list[Pair], depths: tuple[int, ...], tokens: list[int]) -> tuple[Tensor, Tensor]:
    """The share of the effect, depths tokens pairs; and the same with a vector of another noun of the same number."""
    n = len(pairs)
    source, target = (subject.ids(pairs, [x] * n, both(n)) for x in (True, False))
    others = [(a, how, b) for (a, _, _), (_, how, b) in zip(pairs[1:] + pairs[:1], pairs, strict=True)]
    start, end = subject(target), subject(source)
    few = [at for at in tokens if at in (1, 4)]
    control = subject.exchanged(subject.ids(others, [False] * n, both(n)), target, FEW_DEPTHS, few)
    moved = subject.exchanged(source, target, depths, tokens)
    return (moved - start) / (end - start).mean(), (control - start) / (end - start).mean()


def agreement(subject: Subject) -> dict:
    """How often the verb agrees with the first noun, at the end and as the lens reads it by depth."""
    pairs = pairs_of(NOUNS, N_PAIRS, SEED) + pairs_of(OTHER_NOUNS, N_PAIRS, SEED)
    n, rows = len(pairs), {}
    for what, numbers in {"the other number between": (True, False), "the same number": (True, True)}.items():
        kinds = [numbers, tuple(not x for x in numbers)]
        found = []
        for first, second in kinds:
            streams = subject.streams(subject.ids(pairs, [first] * n, [second] * n))[:, :, -1]
            odds = subject.odds(subject.chat.model.project(subject.chat.model.final_norm(streams)))
            found.append(odds if first else -odds)
        odds = torch.cat(found, dim=1)  # depths sentences
        rows[what] = {
            "share right by depth": [round(x, 2) for x in (odds > 0).float().mean(dim=1).tolist()],
            "mean log odds by depth": [round(x, 2) for x in odds.mean(dim=1).tolist()],
        }
    return rows


def directions(subject: Subject) -> dict:
    """For each depth and way to fit a probe: what it reads, its cosine with the means, and what it turns."""
    fitted, held_out = pairs_of(NOUNS, 60, 1), pairs_of(OTHER_NOUNS, 24, 2)

    def drawn(pairs: list[Pair]) -> tuple[Tensor, Tensor]:
        twice = pairs * 2
        number = [at < len(pairs) for at in range(len(twice))]
        return subject.ids(twice, number, both(len(twice))), torch.tensor(number).long()

    (ids, y), (new_ids, label) = drawn(fitted), drawn(held_out)
    streams, new_streams = subject.streams(ids), subject.streams(new_ids)
    sign, whole = 2.0 * label - 1, subject(new_ids)
    generator, rows = torch.Generator().manual_seed(SEED), {}
    for depth in PUSHED:
        x, new = streams[depth][:, -1].double(), new_streams[depth][:, -1].double()
        with torch.inference_mode(False), torch.enable_grad():
            found = inside_seeds.ways(x.clone(), y.clone())
        found["random"] = torch.randn(x.shape[1], generator=generator, dtype=x.dtype)
        means = found["difference of means"]
        for name, way in found.items():
            step = (way * means.norm() / way.norm()).float()

            def push(stream: Tensor, step: Tensor = step) -> Tensor:
                stream = stream.clone()
                stream[:, -1] -= sign[:, None] * step
                return stream

            with patch(subject.chat.model, {subject.name(depth): push}):
                odds = subject(new_ids) * sign
            rows.setdefault(name, {})[str(depth)] = {
                "reads": round(inside_seeds.reads(way, x, y, new, label), 3),
                "cosine": round(functional.cosine_similarity(way, means, dim=0).item(), 3),
                "turned": round((odds < 0).double().mean().item(), 3),
                "moved": round((whole * sign - odds).mean().item(), 2),
            }
    rows["not pushed"] = {"wrong": round((whole * sign < 0).double().mean().item(), 3)}
    return rows


@torch.inference_mode()
def main() -> None:
    started, chat = _record.start(), load("smollm2")
    subject = Subject(chat)
    results: dict = {"tokens": TOKENS, "depths": DEPTHS, "few depths": FEW_DEPTHS, "n_pairs": N_PAIRS}
    results["agreement"] = agreement(subject)
    print(results["agreement"], flush=True)
    share, control = effect(subject, pairs_of(NOUNS, N_PAIRS, SEED), DEPTHS, [1, 2, 3, 4])
    results["exchanged"] = [[[round(x, 2) for x in row] for row in table] for table in share.tolist()]
    print(share.mean(dim=-1), control.mean(dim=-1), flush=True)
    results["directions"] = directions(subject)
    for name, row in results["directions"].items():
        print(name, row, flush=True)
    other, other_control = effect(
        Subject(chat, (" are",), (" is",)), pairs_of(OTHER_NOUNS, N_PAIRS, 3), FEW_DEPTHS, [1, 4]
    )
    results["attacks"] = {
        "another noun of the same number": control.mean(dim=-1).tolist(),
        "other nouns, is and are alone": other.mean(dim=-1).tolist(),
        "their control": other_control.mean(dim=-1).tolist(),
    }
    results["attacks"] = {
        what: [[round(x, 2) for x in row] for row in table] for what, table in results["attacks"].items()
    }
    print(results["attacks"])
    _record.write("inside_pretrained", results, seeds=[SEED], started=started)


if __name__ == "__main__":
    main()
