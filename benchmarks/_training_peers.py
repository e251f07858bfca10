"""Other people's encoder-decoders of one size, each ready to take one training step after another.

A peer is made from the same pairs of token ids and says by ``step()`` how many real target tokens it has just learned
from, and the loss it had on them. All have the sizes of `SIZES`, share one table of embeddings with the output, and
learn with label smoothing, dropout, clipped gradients and a fused AdamW, as far as their own interface lets them;
what differs is said by each. None is changed inside.
"""

import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, nn

from ttutor.tokenization import BOS_ID, EOS_ID, PAD_ID
from ttutor.training.batching import Batch, BucketedBatches, TokenPair
from ttutor.training.precision import products_in

SIZES = {"d_model": 128, "n_heads": 4, "n_layers": 4, "d_ff": 256}
"""Transformer-Tiny of Wu et al. (2021)."""

LONGEST = 130
DROPOUT, SMOOTHING, LEARNING_RATE, WARMUP, CLIP = 0.1, 0.1, 5e-3, 1000, 1.0

Step = Callable[[], tuple[int, float]]


def cycle(pairs: Sequence[TokenPair], tokens_per_batch: int) -> Iterator[Batch]:
    """Batches of pairs of like lengths, epoch after epoch, in the order in which ours come."""
    batches = BucketedBatches(pairs, tokens_per_batch, seed=0)
    return itertools.chain.from_iterable(batches.epoch(number) for number in itertools.count())


class TutorialLoop:
    """The loop that tutorials show: forward, loss, backward, clip, step; the rate rises, then falls as 1 / sqrt.

    Its `precision` may be set to "bf16", for a forward pass under autocast.
    """

    def __init__(self, parameters: Iterator[nn.Parameter], loss: Callable[[Batch], Tensor], batches: Iterator[Batch]):
        self.parameters = list(parameters)
        self.optimizer = torch.optim.AdamW(
            self.parameters, lr=LEARNING_RATE, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0, fused=True
        )
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: min((step + 1) / WARMUP, math.sqrt(WARMUP / (step + 1)))
        )
        self.loss, self.batches = loss, batches
        self.precision = "fp32"

    def __call__(self) -> tuple[int, float]:
        batch = next(self.batches)
        with products_in(self.precision):
            loss = self.loss(batch)
        loss.backward()
        nn.utils.clip_grad_norm_(self.parameters, CLIP)
        self.optimizer.step()
        self.schedule.step()
        self.optimizer.zero_grad(set_to_none=True)
        return batch.n_target_tokens, loss.item()


def sinusoids(length: int, d_model: int) -> Tensor:
    """The paper's table of positions, as tutorials write it."""
    angles = torch.arange(length)[:, None] * torch.exp(torch.arange(0, d_model, 2) * (-math.log(10_000) / d_model))
    table = torch.empty(length, d_model)
    table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()
    return table


class TorchTransformer(nn.Module):
    """``nn.Transformer`` with embeddings, positions and an output that shares the embeddings' table."""

    def __init__(self, vocab_size: int, norm_first: bool = True):
        super().__init__()
        d_model = SIZES["d_model"]
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=PAD_ID)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
        self.register_buffer("positions", sinusoids(LONGEST, d_model))
        self.dropout = nn.Dropout(DROPOUT)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "enable_nested_tensor is True")  # it cannot be told otherwise
            self.body = nn.Transformer(
                d_model,
                SIZES["n_heads"],
                SIZES["n_layers"],
                SIZES["n_layers"],
                SIZES["d_ff"],
                DROPOUT,
                batch_first=True,
                norm_first=norm_first,
            )
        for parameter in self.body.parameters():
            if parameter.ndim > 1:
                nn.init.xavier_uniform_(parameter)

    def embed(self, token_ids: Tensor) -> Tensor:
        scaled = self.embedding(token_ids) * math.sqrt(SIZES["d_model"])
        return self.dropout(scaled + self.positions[: token_ids.shape[1]])

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        hides = source == PAD_ID
        hidden = self.body(
            self.embed(source),
            self.embed(target),
            tgt_mask=self.body.generate_square_subsequent_mask(target.shape[1], dtype=torch.bool),
            src_key_padding_mask=hides,
            memory_key_padding_mask=hides,
            tgt_is_causal=True,
        )
        return hidden @ self.embedding.weight.T


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """PyTorch's, smoothed, over the real targets."""
    return nn.functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=PAD_ID, label_smoothing=SMOOTHING
    )


def torch_transformer(pairs: Sequence[TokenPair], vocab_size: int, tokens_per_batch: int) -> Step:
    """The tutorial's loop over PyTorch's own module."""
    model = TorchTransformer(vocab_size).train()

    def loss(batch: Batch) -> Tensor:
        return cross_entropy(model(batch.source, batch.target_in), batch.target_out)

    return TutorialLoop(model.parameters(), loss, cycle(pairs, tokens_per_batch))


def marian(pairs: Sequence[TokenPair], vocab_size: int, tokens_per_batch: int, attention: str = "sdpa") -> Step:
    """Hugging Face's Marian in a plain loop; its norm stands after the sum, as in all published ones.

    Its attention is PyTorch's fused function or, as "eager", written out, which is faster in bfloat16 on a processor.
    """
    from transformers import MarianConfig, MarianMTModel

    side = {"layers": "n_layers", "attention_heads": "n_heads", "ffn_dim": "d_ff"}
    sizes = {f"{stack}_{name}": SIZES[ours] for stack in ("encoder", "decoder") for name, ours in side.items()}
    config = MarianConfig(
        vocab_size=vocab_size,
        d_model=SIZES["d_model"],
        max_position_embeddings=LONGEST,
        dropout=DROPOUT,
        scale_embedding=True,
        activation_function="relu",
        pad_token_id=PAD_ID,
        eos_token_id=EOS_ID,
        decoder_start_token_id=BOS_ID,
        attn_implementation=attention,
        **sizes,
    )
    model = MarianMTModel(config).train()

    def loss(batch: Batch) -> Tensor:
        logits = model(
            input_ids=batch.source,
            attention_mask=(batch.source != PAD_ID).long(),
            decoder_input_ids=batch.target_in,
            use_cache=False,
        ).logits
        return cross_entropy(logits, batch.target_out)

    return TutorialLoop(model.parameters(), loss, cycle(pairs, tokens_per_batch))


def x_transformers(pairs: Sequence[TokenPair], vocab_size: int, tokens_per_batch: int, flash: bool = True) -> Step:
    """x-transformers' encoder-decoder and its own loss: no label smoothing, learned positions, an output of its own.

    Its attention is PyTorch's fused function or, without `flash`, written out.
    """
    from x_transformers import XTransformer

    common = {"num_tokens": vocab_size, "depth": SIZES["n_layers"], "heads": SIZES["n_heads"], "max_seq_len": LONGEST}
    stack = common | {
        "attn_dim_head": SIZES["d_model"] // SIZES["n_heads"],
        "ff_mult": SIZES["d_ff"] / SIZES["d_model"],
        "attn_dropout": DROPOUT,
        "ff_dropout": DROPOUT,
        "emb_dropout": DROPOUT,
        "attn_flash": flash,
    }
    options = {f"{side}_{name}": value for side in ("enc", "dec") for name, value in stack.items()}
    model = XTransformer(
        dim=SIZES["d_model"], tie_token_emb=True, ignore_index=PAD_ID, pad_value=PAD_ID, **options
    ).train()

    def loss(batch: Batch) -> Tensor:
        whole = torch.cat([batch.target_in, batch.target_out[:, -1:]], dim=1)  # it shifts by itself
        return model(batch.source, whole, mask=batch.source != PAD_ID)

    return TutorialLoop(model.parameters(), loss, cycle(pairs, tokens_per_batch))
