"""Ways to read four times the trained length with rotary positions, without another step of training.

The race of ``positions_extrapolation``, rotary alone: two causal layers are trained on 32 tokens and tested on 32, 64,
128 and 256, on the share of right answers at the last 32 places. Five seeds, two tasks. The frequencies are those of
the training; all slowed (linear); by turns (Llama 3); by a larger base (NTK); by place (YaRN, its bounds set to a
quarter turn and one turn, since heads of eight features turn little within 32 tokens), with and without its sharper
softmax; or the model was trained with a larger base from the start, or with half of the features left unturned.
Guessing is right once in 16.
"""

import torch
from torch import Tensor, nn

from ttutor.decoder import Decoder
from ttutor.embeddings import TokenEmbedding
from ttutor.positions import RotaryPositions, RotaryScaling, rotary_frequencies
from ttutor.positions.scaling import YarnScaling, ntk_base, partial_frequencies
from ttutor.training.fit import fit

import _record

SEEDS = [0, 1, 2, 3, 4]
TRAINED_LEN, TIMES = 32, [1, 2, 4, 8]
N_SYMBOLS, OFFSET, MARK = 16, 3, 16
D_MODEL, D_HEAD, N_LAYERS, BATCH, STEPS, WARMUP, PEAK = 32, 8, 2, 32, 400, 40, 5e-3


class Reader(nn.Module):
    """Embed, two causal layers with turned queries and keys, name a symbol at every place."""

    def __init__(self, frequencies: Tensor) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(N_SYMBOLS + 1, D_MODEL)
        self.turn(frequencies)
        self.stack = Decoder(D_MODEL, D_MODEL // D_HEAD, 4 * D_MODEL, N_LAYERS, cross_attention=False, norm="pre")
        self.to_logits = nn.Linear(D_MODEL, N_SYMBOLS, bias=False)

    def turn(self, frequencies: Tensor, scale: float = D_HEAD**-0.5) -> None:
        """Turn by these frequencies from now on, and multiply scores by this factor."""
        self.rotary = RotaryPositions(D_HEAD, layout="interleaved", frequencies=frequencies)
        for layer in self.stack.layers if hasattr(self, "stack") else ():
            layer.self_attention.scale = scale

    def forward(self, token_ids: Tensor) -> Tensor:
        rotation = self.rotary(torch.arange(token_ids.shape[1])[None])
        return self.to_logits(self.stack(self.embedding(token_ids), rotation=rotation))


def three_back(n_rows: int, n_tokens: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Symbols, and at each place the one three places before; -100 where there is none."""
    token_ids = torch.randint(N_SYMBOLS, (n_rows, n_tokens), generator=generator)
    target = torch.full_like(token_ids, -100)
    target[:, OFFSET:] = token_ids[:, :-OFFSET]
    return token_ids, target


def after_the_mark(n_rows: int, n_tokens: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Symbols with one mark in the first half, and from two places after it on the symbol that followed it."""
    token_ids = torch.randint(N_SYMBOLS, (n_rows, n_tokens), generator=generator)
    place = torch.randint(n_tokens // 2, (n_rows, 1), generator=generator)
    token_ids.scatter_(1, place, MARK)
    return token_ids, torch.where(torch.arange(n_tokens) > place + 1, token_ids.gather(1, place + 1), -100)


TASKS = {"three back": three_back, "after the mark": after_the_mark}


def answer_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    token_ids, target = batch
    return nn.functional.cross_entropy(model(token_ids).flatten(0, 1), target.flatten(), ignore_index=-100)


def train(task, frequencies: Tensor, seed: int) -> Reader:
    torch.manual_seed(seed)
    model, generator = Reader(frequencies), torch.Generator().manual_seed(seed)
    texts = (task(BATCH, TRAINED_LEN, generator) for _ in range(STEPS))

    def rate(step: int) -> float:
        return PEAK * min(1.0, step / WARMUP) * (1 - step / (STEPS + 1))

    fit(model, texts, answer_loss, steps=STEPS, learning_rate=rate)
    return model


@torch.no_grad()
def accuracy(model: Reader, task, times: int) -> float:
    """Share of right answers at the last places of texts so many times as long; the test texts are fixed."""
    token_ids, target = task(128, times * TRAINED_LEN, torch.Generator().manual_seed(1000 + times))
    answers, target = model(token_ids).argmax(dim=-1)[:, -TRAINED_LEN:], target[:, -TRAINED_LEN:]
    return round((answers == target)[target >= 0].double().mean().item(), 4)


def slowed(times: int) -> dict[str, tuple[Tensor, float]]:
    """The frequencies and the factor of the scores, by each way of scaling."""
    frequencies, plain = rotary_frequencies(D_HEAD), D_HEAD**-0.5
    yarn = YarnScaling(factor=float(times), trained_len=TRAINED_LEN, few_turns=0.25, many_turns=1.0)
    return {
        "as trained": (frequencies, plain),
        "linear": (RotaryScaling(factor=float(times))(frequencies), plain),
        "by turns": (RotaryScaling(factor=float(times), trained_len=TRAINED_LEN)(frequencies), plain),
        "larger base (NTK)": (rotary_frequencies(D_HEAD, ntk_base(D_HEAD, float(times))), plain),
        "YaRN": (yarn(frequencies), yarn.scale(D_HEAD)),
        "YaRN without its factor": (yarn(frequencies), plain),
    }


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    trained_otherwise = {
        "trained with base 500,000": rotary_frequencies(D_HEAD, 500_000.0),
        "trained with half of the features turned": partial_frequencies(D_HEAD, D_HEAD // 2),
    }
    runs = []
    for name, task in TASKS.items():
        models = [train(task, rotary_frequencies(D_HEAD), seed) for seed in SEEDS]
        for way in slowed(1):
            shares = []
            for model in models:
                shares.append([])
                for times in TIMES:
                    model.turn(*slowed(times)[way])
                    shares[-1].append(accuracy(model, task, times))
            runs.append({"task": name, "way": way, "accuracy": shares})
        for way, frequencies in trained_otherwise.items():
            models = [train(task, frequencies, seed) for seed in SEEDS]
            shares = [[accuracy(model, task, times) for times in TIMES] for model in models]
            runs.append({"task": name, "way": way, "accuracy": shares})
        print(*runs, sep="\n", flush=True)
    settings = {"trained_len": TRAINED_LEN, "times": TIMES, "steps": STEPS, "d_head": D_HEAD, "chance": 1 / N_SYMBOLS}
    _record.write("positions_scaling", {"settings": settings, "runs": runs}, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
