"""A telephone book, read by a state of fixed size: how many of its numbers are kept, by the size of the state.

A text lists names with their numbers, and asks for four of them. Name and number stand in one token, so a single
look-up suffices; there are 32 names and 32 numbers, no positions. One layer, pre-norm, one head, no feed-forward
network. What differs is the mixer (softmax attention, a window of 4, sums with elu + 1, the delta rule) and, for the
two recurrences, the width of the layer: 16, 32 or 64, and with it the state.

The delta rule is computed for a whole text at once: with N for what is written, N = b (V - strictly lower part of
K K^T times N) is a triangular system; `check_delta` holds it against the loop over tokens. Queries and keys of the
delta rule have length one, its share b is learned for each token.

Each arm has its rate chosen by the mean loss of two runs with seeds used for nothing else, among three rates, and where
the best is the first or the last, further ones; then five seeds of 800 steps: Adam, the rate rising for a tenth of the
steps and falling linearly to zero, gradients clipped to norm 1. What is counted are the right answers on 500 new books
of 6, 12, 18 and 24 entries. The attacks: four times the steps; only the features of the sums wider, while the layer
stays at 16; 16 names only, so that each could have a feature of its own; rates between those of the grid.
"""

import torch
from einops import einsum, rearrange
from torch import Tensor, nn
from torch.nn import functional

from experiments import _record
from ttutor.attention import scaled_dot_product_attention
from ttutor.efficient import linear_attention, window_attention

SEEDS, SEEDS_OF_CHOICE, STEPS, BATCH = [0, 1, 2, 3, 4], [100, 101], 800, 32
ENTRIES, N_NAMES, N_NUMBERS, N_QUESTIONS = [6, 12, 18, 24], 32, 32, 4
RATES = [0.01, 0.03, 0.1]
WIDTHS = [16, 32, 64]
STATES = {"sums": lambda d_key, d_value: d_key * (d_value + 1), "delta rule": lambda d_key, d_value: d_key * d_value}


def phone_books(n_books: int, n_entries: int, generator: torch.Generator, n_names: int = N_NAMES) -> tuple[Tensor, ...]:
    """Names and numbers of entries and questions, and the answers."""
    names = torch.rand(n_books, n_names, generator=generator).argsort(dim=-1)[:, :n_entries]
    numbers = torch.randint(N_NUMBERS, (n_books, n_entries), generator=generator)
    asked = torch.randint(n_entries, (n_books, N_QUESTIONS), generator=generator)
    all_names = torch.cat([names, names.gather(1, asked)], dim=1)
    all_numbers = functional.pad(numbers, (0, N_QUESTIONS), value=N_NUMBERS)
    return all_names, all_numbers, numbers.gather(1, asked)


def delta_rule(query: Tensor, key: Tensor, value: Tensor, share: Tensor) -> Tensor:
    """What each query reads from H, where H + b k (v - H^T k)^T follows on H, for all tokens at once."""
    query, key = functional.normalize(query, dim=-1), functional.normalize(key, dim=-1)
    overlaps = einsum(key, key, "books later d_key, books earlier d_key -> books later earlier").tril(-1)
    system = torch.eye(key.shape[1]) + share * overlaps
    written = torch.linalg.solve_triangular(system, share * value, upper=False, unitriangular=True)
    scores = einsum(query, key, "books queries d_key, books keys d_key -> books queries keys").tril()
    return scores @ written


def check_delta() -> None:
    """The triangular system gives what the loop over tokens gives."""
    generator = torch.Generator().manual_seed(0)
    query, key, value = torch.randn(3, 2, 20, 8, generator=generator)
    share = torch.rand(2, 20, 1, generator=generator)
    state, outputs = torch.zeros(2, 8, 8), []
    q, k = functional.normalize(query, dim=-1), functional.normalize(key, dim=-1)
    for t in range(20):
        said = einsum(k[:, t], state, "books d_key, books d_key d_value -> books d_value")
        news = share[:, t] * (value[:, t] - said)
        state = state + einsum(k[:, t], news, "books d_key, books d_value -> books d_key d_value")
        outputs.append(einsum(q[:, t], state, "books d_key, books d_key d_value -> books d_value"))
    torch.testing.assert_close(delta_rule(query, key, value, share), torch.stack(outputs, dim=1), rtol=1e-4, atol=1e-5)


class Reader(nn.Module):
    """One layer of a mixer between two tables and an output map, as in the chapter."""

    def __init__(self, mixer: str, width: int, d_key: int) -> None:
        super().__init__()
        self.mixer, self.sizes = mixer, [d_key, d_key, width]
        self.name, self.number = nn.Embedding(N_NAMES, width), nn.Embedding(N_NUMBERS + 1, width)
        self.norm, self.to_qkv = nn.LayerNorm(width), nn.Linear(width, 2 * d_key + width)
        self.to_share, self.to_logits = nn.Linear(width, 1), nn.Linear(width, N_NUMBERS)

    def forward(self, names: Tensor, numbers: Tensor) -> Tensor:
        hidden = self.name(names) + self.number(numbers)
        seen = self.norm(hidden)
        query, key, value = self.to_qkv(seen).split(self.sizes, dim=-1)
        if self.mixer == "delta rule":
            mixed = delta_rule(query, key, value, self.to_share(seen).sigmoid())
        else:
            heads = (rearrange(one, "books tokens d -> books 1 tokens d") for one in (query, key, value))
            mixed = rearrange(self.attend(*heads), "books 1 tokens d -> books tokens d")
        return self.to_logits((hidden + mixed)[:, -N_QUESTIONS:])

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        if self.mixer == "sums":
            return linear_attention(query, key, value, causal=True)
        if self.mixer == "window of 4":
            return window_attention(query, key, value, causal=True, window=4)
        return scaled_dot_product_attention(query, key, value, causal=True)


def run(mixer: str, width: int, seed: int, rate: float, *, steps: int = STEPS, features: int = 0, n_names: int = 0):
    """Right answers by the number of entries, and the mean loss of the last 50 steps."""
    torch.manual_seed(seed)
    generator, n_names = torch.Generator().manual_seed(seed), n_names or N_NAMES
    lengths = [n for n in ENTRIES if n <= n_names] if n_names != N_NAMES else ENTRIES
    reader = Reader(mixer, width, features or width)
    optimiser = torch.optim.Adam(reader.parameters(), lr=rate)
    course = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: min(10 * (step + 1) / steps, 1 - step / steps))
    losses = []
    for _ in range(steps):
        n_entries = lengths[int(torch.randint(len(lengths), (1,), generator=generator))]
        names, numbers, answers = phone_books(BATCH, n_entries, generator, n_names)
        loss = functional.cross_entropy(reader(names, numbers).flatten(0, 1), answers.flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
        optimiser.step()
        course.step()
        losses.append(loss.item())
    right = []
    with torch.no_grad():
        for n_entries in lengths:
            names, numbers, answers = phone_books(500, n_entries, generator, n_names)
            right.append(round((reader(names, numbers).argmax(dim=-1) == answers).double().mean().item(), 4))
    return right, sum(losses[-50:]) / 50


def chosen_rate(mixer: str, width: int) -> tuple[float, dict[float, float]]:
    """The rate of the least loss, neither the smallest nor the largest that was tried."""

    def loss(rate: float) -> float:
        return sum(run(mixer, width, seed, rate)[1] for seed in SEEDS_OF_CHOICE) / len(SEEDS_OF_CHOICE)

    tried = {rate: loss(rate) for rate in RATES}
    while len(tried) < 6:
        best, rates = min(tried, key=lambda rate: tried[rate]), sorted(tried)
        if best not in (rates[0], rates[-1]):
            break
        further = round(best / 3 if best == rates[0] else best * 3, 5)
        tried[further] = loss(further)
    return min(tried, key=lambda rate: tried[rate]), {rate: round(tried[rate], 4) for rate in sorted(tried)}


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    check_delta()
    arms = [("softmax", 16), ("window of 4", 16)] + [(mixer, width) for mixer in STATES for width in WIDTHS]
    found: dict[str, dict] = {}
    for mixer, width in arms:
        rate, tried = chosen_rate(mixer, width)
        right = [run(mixer, width, seed, rate)[0] for seed in SEEDS]
        state = STATES[mixer](width, width) if mixer in STATES else 0
        found[f"{mixer}, {width}"] = {"state": state, "rate": rate, "tried": tried, "right": right}
        print(mixer, width, state, rate, right, flush=True)
    rate_of = {name: one["rate"] for name, one in found.items()}
    attacks: dict[str, list] = {}
    for mixer, width in (("sums", 16), ("delta rule", 16)):
        rate = rate_of[f"{mixer}, {width}"]
        longer = [run(mixer, width, seed, rate, steps=4 * STEPS)[0] for seed in SEEDS[:2]]
        attacks[f"{mixer}, {width}: four times the steps"] = longer
        print(mixer, width, "longer", longer, flush=True)
    for features in (32, 64):
        rate = rate_of["sums, 16"]
        wider = [run("sums", 16, seed, rate, features=features)[0] for seed in SEEDS]
        attacks[f"sums, 16: {features} features"] = wider
        print("features", features, wider, flush=True)
    few = [run("sums", 16, seed, rate_of["sums, 16"], n_names=16)[0] for seed in SEEDS]
    attacks["sums, 16: 16 names"] = few
    print("16 names", few, flush=True)
    for mixer in STATES:
        rate = rate_of[f"{mixer}, 16"]
        for factor in (0.6, 1.7):
            other = [run(mixer, 16, seed, factor * rate)[0] for seed in SEEDS[:3]]
            attacks[f"{mixer}, 16: {factor} times the rate"] = other
            print(mixer, factor, other, flush=True)
    settings = {"entries": ENTRIES, "steps": STEPS, "n_names": N_NAMES, "n_numbers": N_NUMBERS, "batch": BATCH}
    results = {"settings": settings, "arms": found, "attacks": attacks}
    _record.write("efficient_budget", results, seeds=[*SEEDS, *SEEDS_OF_CHOICE], started=started)


if __name__ == "__main__":
    main()
