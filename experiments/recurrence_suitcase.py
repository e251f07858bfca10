"""Who was too big? The trophy and the suitcase as a task for RNNs, an LSTM, a GRU and a Transformer, three seeds.

"the trophy did not fit into the suitcase ... because it was too big": the last word decides whether *it* is the first
noun (big) or the second (small). The nouns are drawn from twenty, any noun can stand in either place, and between the
nouns and the reason stand up to 24 words that do not matter. A model of width 64 reads the sentence and names the
noun from its last vector. It is tested on pairs of nouns that it never met in this order, and up to 32 words apart.
Counted are right answers, answers that name one of the two nouns, and twins: the same sentence with "big" and with
"small", both right. One RNN starts with torch's random recurrent matrix, the other with an orthogonal one; one LSTM
starts as torch's, the other with its forget gates nearly open. The peak rates of RNN, LSTM and GRU are the better of
two that were tried on the first seed. About two minutes on one core.
"""

import torch
from torch import Tensor, nn

from ttutor.encoder import Encoder
from ttutor.positions import sinusoidal_encoding
from ttutor.training.fit import fit

import _record

SEEDS = [0, 1, 2]
N_NOUNS, N_FILLERS, D_MODEL, BATCH, STEPS = 20, 8, 64, 64, 800
BIG, SMALL = N_NOUNS, N_NOUNS + 1
DID_NOT_FIT_INTO, BECAUSE_IT_WAS_TOO = range(N_NOUNS + 2, N_NOUNS + 6), range(N_NOUNS + 6, N_NOUNS + 10)
THE = N_NOUNS + 10
FIRST_FILLER = N_NOUNS + 11
VOCAB_SIZE = FIRST_FILLER + N_FILLERS
LONGEST, DISTANCES = 24, [0, 8, 16, 24, 32]
RATES = {
    "RNN": 1e-3,
    "RNN, orthogonal": 1e-3,
    "LSTM": 1e-2,
    "LSTM, forget bias 3": 1e-2,
    "GRU": 1e-2,
    "Transformer": 3e-3,
}
N_TEST = 500


def sentences(first: Tensor, second: Tensor, small: Tensor, distance: int, generator: torch.Generator) -> Tensor:
    """Token ids of "the (first) did not fit into the (second) (fillers) because it was too big/small"."""
    n = len(first)

    def words(ids) -> Tensor:
        return torch.tensor(list(ids)).expand(n, -1)

    fillers = torch.randint(FIRST_FILLER, VOCAB_SIZE, (n, distance), generator=generator)
    reason = torch.where(small, SMALL, BIG)
    return torch.cat(
        [words([THE]), first[:, None], words(DID_NOT_FIT_INTO), words([THE]), second[:, None], fillers]
        + [words(BECAUSE_IT_WAS_TOO), reason[:, None]],
        dim=1,
    )


def pairs_of_nouns(seed: int) -> tuple[Tensor, Tensor]:
    """All ordered pairs of different nouns: those to learn from, and a fifth that is kept for the test."""
    pairs = torch.cartesian_prod(torch.arange(N_NOUNS), torch.arange(N_NOUNS))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    pairs = pairs[torch.randperm(len(pairs), generator=torch.Generator().manual_seed(seed))]
    return pairs[len(pairs) // 5 :], pairs[: len(pairs) // 5]


class Reader(nn.Module):
    """Embed, read, and name a noun from the last vector. The recurrent ones are torch's, one layer."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCAB_SIZE, D_MODEL)
        if kind == "Transformer":
            self.reader = Encoder(D_MODEL, 4, 2 * D_MODEL, n_layers=2, norm="pre")
            self.positions = sinusoidal_encoding(max(DISTANCES) + 20, D_MODEL)
        else:
            layers = {"RNN": nn.RNN, "LSTM": nn.LSTM, "GRU": nn.GRU}
            self.reader = layers[kind.partition(",")[0]](D_MODEL, D_MODEL, batch_first=True)
            if kind == "RNN, orthogonal":
                nn.init.orthogonal_(self.reader.weight_hh_l0)
            if kind == "LSTM, forget bias 3":
                nn.init.constant_(self.reader.bias_ih_l0[D_MODEL : 2 * D_MODEL], 3.0)  # torch's order: i, f, g, o
            self.positions = None
        self.to_noun = nn.Linear(D_MODEL, N_NOUNS)

    def forward(self, token_ids: Tensor) -> Tensor:
        hidden = self.embedding(token_ids)
        if self.positions is not None:
            hidden = self.reader(hidden + self.positions[: token_ids.shape[1]])
        else:
            hidden, _ = self.reader(hidden)
        return self.to_noun(hidden[:, -1])


def answers(first: Tensor, second: Tensor, small: Tensor) -> Tensor:
    """The noun that was too big (the first) or too small (the second)."""
    return torch.where(small, second, first)


def batches(seed: int):
    """Sentences and answers without end, from the pairs to learn from; each batch has one distance."""
    generator = torch.Generator().manual_seed(seed)
    pairs, _ = pairs_of_nouns(seed)
    while True:
        first, second = pairs[torch.randint(len(pairs), (BATCH,), generator=generator)].T
        small = torch.rand(BATCH, generator=generator) < 0.5
        distance = int(torch.randint(LONGEST + 1, (1,), generator=generator))
        yield sentences(first, second, small, distance, generator), answers(first, second, small)


def noun_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    token_ids, answer = batch
    return nn.functional.cross_entropy(model(token_ids), answer)


@torch.no_grad()
def tested(model: nn.Module, distance: int, seed: int) -> dict[str, float]:
    """Shares of unseen pairs of nouns: right sentences, right twins, and answers that name one of the two nouns."""
    _, pairs = pairs_of_nouns(seed)
    first, second = pairs[:N_TEST].T
    right, either = [], []
    for is_small in (False, True):
        small = torch.full(first.shape, is_small)
        # The same generator: the two twins differ in the last word alone.
        token_ids = sentences(first, second, small, distance, torch.Generator().manual_seed(seed + 1_000))
        named = model(token_ids).argmax(dim=-1)
        right.append(named == answers(first, second, small))
        either.append((named == first) | (named == second))
    return {
        "right": round(torch.stack(right).float().mean().item(), 3),
        "twins": round((right[0] & right[1]).float().mean().item(), 3),
        "one_of_the_two": round(torch.stack(either).float().mean().item(), 3),
    }


def train(kind: str, seed: int) -> Reader:
    """Train one model; the rate falls linearly to zero."""
    torch.manual_seed(seed)
    model = Reader(kind)
    peak = RATES[kind]
    fit(
        model, batches(seed), noun_loss, steps=STEPS,
        learning_rate=lambda step: peak * min(1, step / 20) * (1 - step / (STEPS + 1)),
    )  # fmt: skip
    return model


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    runs = []
    for kind in RATES:
        models = [(train(kind, seed), seed) for seed in SEEDS]
        parameters = sum(parameter.numel() for parameter in models[0][0].parameters())
        for distance in DISTANCES:
            results = [tested(model, distance, seed) for model, seed in models]
            by_seed = {name: [result[name] for result in results] for name in results[0]}
            runs.append({"model": kind, "parameters": parameters, "distance": distance, **by_seed})
            print(runs[-1], flush=True)
    settings = {
        "n_nouns": N_NOUNS,
        "d_model": D_MODEL,
        "batch": BATCH,
        "steps": STEPS,
        "longest": LONGEST,
        "peak_rates": RATES,
    }
    _record.write("recurrence_suitcase", {"settings": settings, "runs": runs}, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
