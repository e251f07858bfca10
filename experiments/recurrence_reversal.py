"""One vector or a look back? A GRU that writes sentences backwards, with and without additive attention, three seeds.

The source is a row of random words and the end mark, the target the same words in reverse. Encoder-decoders whose
encoder reads from both ends learn it from the same batches of sentences of 2 to 14 words. The decoder begins in the
encoder's last state and gets nothing else (Sutskever et al. 2014); or it is fed the same vector again at every step
(Cho et al. 2014); or it looks back at every hidden vector of the encoder at every step (Bahdanau et al. 2015). The
first is run twice as wide, too, and with update gates that begin open, at a bias of 2. Each
of four rates is tried on a seed of its own; the one with the lowest loss on fresh sentences is run on three others.

All then write freshly drawn sentences greedily, word after word, also sentences longer than any they have learned from.
Counted is the share of words that are right in their place, for sentences of 14 words also place by place. Stored
besides: where the decoder looked while it wrote one sentence. About fifteen minutes, one core.
"""

import torch
from einops import rearrange
from torch import Tensor, nn

from experiments import _record
from ttutor.recurrence import GRUCell, Seq2Seq, Seq2SeqConfig, Source, State
from ttutor.training.fit import fit

SEEDS, CHOOSING = [0, 1, 2], 100
RATES = [1e-3, 3e-3, 1e-2, 3e-2]
N_WORDS, D_MODEL, BATCH, STEPS = 20, 64, 64, 1200
PAD, BOS, EOS, FIRST_WORD = 0, 2, 3, 4
LONGEST_TRAINED, LENGTHS, LONGER = 14, [2, 4, 6, 8, 10, 12, 14], [18, 22]
N_TEST, OPEN = 300, 2.0
KINDS = ["look back", "start", "start, wide", "start, open gates", "every step"]


class FedAtEveryStep(Seq2Seq):
    """The encoder's last state starts the decoder, and is read by it again beside every word."""

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__(config)
        self.decoder_cell = GRUCell(2 * config.d_model, config.d_model)

    def read(self, source_ids: Tensor) -> tuple[Source, State]:
        """The memory is one row, the last state."""
        source, state = super().read(source_ids)
        return source._replace(memory=rearrange(state[0], "batch d_model -> batch 1 d_model")), state

    def step(self, token_ids: Tensor, state: State, source: Source) -> State:
        """Read the previous token of each row, and the vector beside it."""
        return self.decoder_cell(torch.cat([self.target_embedding(token_ids), source.memory[:, 0]], dim=-1), state)


def sentences(n_sentences: int, n_words: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Source, what the decoder reads, and what it has to write."""
    words = torch.randint(FIRST_WORD, FIRST_WORD + N_WORDS, (n_sentences, n_words), generator=generator)
    start, end = torch.full((n_sentences, 1), BOS), torch.full((n_sentences, 1), EOS)
    return (
        torch.cat([words, end], dim=1),
        torch.cat([start, words.flip(1)], dim=1),
        torch.cat([words.flip(1), end], dim=1),
    )


def batches(seed: int):
    """Batches without end, each of one length between 2 and 14."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        n_words = int(torch.randint(2, LONGEST_TRAINED + 1, (1,), generator=generator))
        yield sentences(BATCH, n_words, generator)


def next_word_loss(model: nn.Module, batch: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """Mean cross-entropy of each word that is to be written, the end mark included."""
    source, target_in, target_out = batch
    return nn.functional.cross_entropy(model(source, target_in).flatten(0, 1), target_out.flatten())


def right_by_place(model: Seq2Seq, n_words: int) -> Tensor:
    """Share of right words at each place of the source, first word first, of sentences written greedily."""
    source, _, wanted = sentences(N_TEST, n_words, torch.Generator().manual_seed(1_000 + n_words))
    written = model.greedy(source, bos_id=BOS, eos_id=EOS, max_new_tokens=n_words)
    written = nn.functional.pad(written, (0, n_words - written.shape[1]))
    return (written == wanted[:, :n_words]).float().mean(dim=0).flip(0)


def validation_loss(model: nn.Module) -> float:
    """Mean loss on fresh sentences of the lengths of training."""
    generator = torch.Generator().manual_seed(2_000)
    with torch.no_grad():
        losses = [next_word_loss(model, sentences(N_TEST, n_words, generator)) for n_words in LENGTHS]
    return round(torch.stack(losses).mean().item(), 3)


def train(kind: str, seed: int, peak: float) -> Seq2Seq:
    """Train one model; the rate falls linearly to zero."""
    torch.manual_seed(seed)
    name, _, change = kind.partition(", ")
    config = Seq2SeqConfig(
        vocab_size=FIRST_WORD + N_WORDS,
        d_model=2 * D_MODEL if change == "wide" else D_MODEL,
        attention=name == "look back",
        bidirectional=True,
    )
    model = FedAtEveryStep(config) if name == "every step" else Seq2Seq(config)
    if change == "open gates":
        with torch.no_grad():
            for cell in (module for module in model.modules() if isinstance(module, GRUCell)):
                cell.biases().update.fill_(OPEN)
    fit(model, batches(seed), next_word_loss, steps=STEPS, learning_rate=lambda step: peak * (1 - step / (STEPS + 1)))
    return model


def run_of(kind: str, seed: int, peak: float) -> dict:
    """Train one model and let it write."""
    model = train(kind, seed, peak)
    places = {n_words: right_by_place(model, n_words) for n_words in LENGTHS + LONGER}
    run = {
        "decoder": kind,
        "seed": seed,
        "peak_rate": peak,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "right": {str(n): round(place.mean().item(), 3) for n, place in places.items()},
        "right_by_place_of_14": [round(share, 3) for share in places[14].tolist()],
    }
    if kind == "look back":
        source, target_in, _ = sentences(1, 10, torch.Generator().manual_seed(7))
        with torch.no_grad():
            looked = model.attention_weights(source, target_in)[0, :10]
        run["looked"] = [[round(weight, 2) for weight in row] for row in looked.tolist()]
    print(run, flush=True)
    return run


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    runs, losses = [], {}
    for kind in KINDS:
        tried = {peak: validation_loss(train(kind, CHOOSING, peak)) for peak in RATES}
        losses[kind] = {f"{peak:g}": loss for peak, loss in tried.items()}
        print(kind, losses[kind], flush=True)
        runs += [run_of(kind, seed, min(tried, key=tried.get)) for seed in SEEDS]
    settings = {
        "n_words": N_WORDS, "d_model": D_MODEL, "batch": BATCH, "steps": STEPS, "longest_trained": LONGEST_TRAINED,
        "n_test": N_TEST, "rates": RATES, "open": OPEN,
    }  # fmt: skip
    result = {"settings": settings, "loss_by_rate": losses, "runs": runs}
    _record.write("recurrence_reversal", result, seeds=SEEDS, started=started)


if __name__ == "__main__":
    main()
