"""What each part that changed since 2017 does by itself: eleven small language models of equal size, one task.

The task: the next character of English sentences from the embedded corpus, written one after another, in pieces of 64
characters. The baseline is built as GPT-2 is: pre-norm layer normalisation, GELU, learned positions, as many key/value
heads as query heads. Every other model differs from it in one part, the last in four at once, and its ``d_ff`` is
chosen so that the number of parameters comes as near to the baseline's as it can. No biases outside the norms.

Every model has its learning rate chosen in the same way: the lowest loss on the validation sentences of one run with a
seed that is used for nothing else, out of three rates. Then three seeds are trained, and measured on sentences of the
test split, which hold combinations of words that were never shown. Adam, constant rate, no warm-up, gradients clipped
to norm 1. Losses in nats per character.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from experiments import _record
from ttutor.corpora.corpus import embedded_corpus
from ttutor.layers import FeedForward, GatedFeedForward, LayerNorm, PostNorm, PreNorm, RMSNorm
from ttutor.masks import CAUSAL
from ttutor.multihead import MultiHeadAttention
from ttutor.positions import LearnedPositions, RotaryPositions
from ttutor.training.fit import fit

SEEDS, SEED_OF_CHOICE = [0, 1, 2], 100
RATES = [1e-3, 3e-3, 1e-2]
D_MODEL, N_HEADS, N_LAYERS, D_FF, N_TOKENS, BATCH, STEPS = 64, 8, 2, 256, 64, 16, 300
PARTS = {
    "baseline": {},
    "post-norm": {"around": PostNorm},
    "RMSNorm": {"make_norm": RMSNorm},
    "ReLU": {"activation": "relu"},
    "SwiGLU": {"gated": True, "activation": "silu"},
    "GeGLU": {"gated": True},
    "rotary": {"rotary": True},
    "no positions": {"positions": False},
    "2 of 8 key/value heads": {"n_kv_heads": 2},
    "1 of 8 key/value heads": {"n_kv_heads": 1},
    "all four of Llama's": {
        "make_norm": RMSNorm, "gated": True, "activation": "silu", "rotary": True, "n_kv_heads": 2
    },
}  # fmt: skip


class Layer(nn.Module):
    """Causal self-attention and a feed-forward network, in the parts that were asked for."""

    def __init__(self, d_ff, around=PreNorm, make_norm=LayerNorm, activation="gelu", gated=False, n_kv_heads=N_HEADS):
        super().__init__()
        self.attention = MultiHeadAttention(D_MODEL, N_HEADS, n_kv_heads, bias=False)
        kind = GatedFeedForward if gated else FeedForward
        self.feed_forward = kind(D_MODEL, d_ff, activation=activation, bias=False)
        self.around_attention = around(D_MODEL, make_norm=make_norm)
        self.around_feed_forward = around(D_MODEL, make_norm=make_norm)

    def forward(self, hidden: Tensor, rotation) -> Tensor:
        hidden = self.around_attention(hidden, lambda stream: self.attention(stream, mask=CAUSAL, rotation=rotation))
        return self.around_feed_forward(hidden, self.feed_forward)


class LanguageModel(nn.Module):
    """Logits of the character after each character."""

    def __init__(self, n_characters: int, d_ff: int, *, positions: bool = True, rotary: bool = False, **parts) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_characters, D_MODEL)
        self.positions = LearnedPositions(D_MODEL, N_TOKENS) if positions and not rotary else None
        self.rotary = RotaryPositions(D_MODEL // N_HEADS) if rotary else None
        self.layers = nn.ModuleList(Layer(d_ff, **parts) for _ in range(N_LAYERS))
        pre = parts.get("around", PreNorm) is PreNorm
        self.final_norm = parts.get("make_norm", LayerNorm)(D_MODEL) if pre else nn.Identity()
        self.to_logits = nn.Linear(D_MODEL, n_characters, bias=False)
        for parameter in [self.embedding.weight, self.to_logits.weight]:
            nn.init.normal_(parameter, std=0.02)

    def forward(self, token_ids: Tensor) -> Tensor:
        places = torch.arange(token_ids.shape[-1])[None]
        hidden = self.embedding(token_ids)
        hidden = hidden if self.positions is None else hidden + self.positions(places)
        rotation = None if self.rotary is None else self.rotary(places)
        for layer in self.layers:
            hidden = layer(hidden, rotation)
        return self.to_logits(self.final_norm(hidden))


def size(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def d_ff_of_equal_size(n_characters: int, parts: dict) -> int:
    """The inner width that brings the number of parameters nearest to the baseline's."""
    wanted = size(LanguageModel(n_characters, D_FF))
    return min(range(64, 512), key=lambda d_ff: abs(size(LanguageModel(n_characters, d_ff, **parts)) - wanted))


def next_character_loss(model: nn.Module, pieces: Tensor) -> Tensor:
    """Mean cross-entropy, in nats per character."""
    return functional.cross_entropy(model(pieces[:, :-1]).flatten(0, 1), pieces[:, 1:].flatten())


def pieces_of(text: str, index_of: dict[str, int], n_pieces: int) -> Tensor:
    """The beginning of a text, cut into pieces."""
    ids = torch.tensor([index_of[character] for character in text[: n_pieces * (N_TOKENS + 1)]])
    return ids.reshape(n_pieces, N_TOKENS + 1)


def train(parts: dict, d_ff: int, rate: float, seed: int, text: Tensor, n_characters: int) -> nn.Module:
    torch.manual_seed(seed)
    model = LanguageModel(n_characters, d_ff, **parts)
    starts = torch.randint(len(text) - N_TOKENS - 1, (STEPS, BATCH))
    batches = ([text[start : start + N_TOKENS + 1] for start in row] for row in starts.tolist())
    fit(model, map(torch.stack, batches), next_character_loss, steps=STEPS, learning_rate=rate)
    return model


@torch.no_grad()
def loss_on(model: nn.Module, pieces: Tensor) -> float:
    return round(next_character_loss(model, pieces).item(), 4)


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    corpus = embedded_corpus(sizes={"train": 10_000, "validation": 1000, "test": 2000})
    splits = {"train": corpus.train, "validation": corpus.validation, "test": corpus.test}
    texts = {name: "\n".join(english for english, _ in pairs) for name, pairs in splits.items()}
    characters = sorted(set("".join(texts.values())))
    index_of = {character: index for index, character in enumerate(characters)}
    text = torch.tensor([index_of[character] for character in texts["train"]])
    validation, test = (pieces_of(texts[split], index_of, 256) for split in ("validation", "test"))
    share = torch.bincount(text, minlength=len(characters)) / len(text)
    unigram = -share[test[:, 1:]].log().mean().item()
    rows = []
    for name, parts in PARTS.items():
        d_ff = d_ff_of_equal_size(len(characters), parts)

        def run(rate, seed, parts=parts, d_ff=d_ff):
            return train(parts, d_ff, rate, seed, text, len(characters))

        tried = [loss_on(run(rate, SEED_OF_CHOICE), validation) for rate in RATES]
        rate = RATES[tried.index(min(tried))]
        losses = [loss_on(run(rate, seed), test) for seed in SEEDS]
        n_parameters = size(LanguageModel(len(characters), d_ff, **parts))
        rows.append(
            {"part": name, "d_ff": d_ff, "parameters": n_parameters, "tried": tried, "rate": rate, "test": losses}
        )
        print(rows[-1], flush=True)
    settings = {
        "rates": RATES, "steps": STEPS, "batch": BATCH, "n_tokens": N_TOKENS, "d_model": D_MODEL, "n_heads": N_HEADS,
        "n_layers": N_LAYERS, "n_characters": len(characters), "unigram": round(unigram, 4),
    }  # fmt: skip
    _record.write(
        "variants_parts", {"settings": settings, "rows": rows}, seeds=[*SEEDS, SEED_OF_CHOICE], started=started,
        embedded_corpus=True,
    )  # fmt: skip


if __name__ == "__main__":
    main()
