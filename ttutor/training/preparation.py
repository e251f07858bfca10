"""From a corpus and a recipe to what a trainer works on: a tokenizer, pairs of token ids, a model's sizes."""

from collections.abc import Sequence

from ttutor.corpora.corpus import Corpus, Pair
from ttutor.corpora.text_style import TextStyle
from ttutor.errors import InputError
from ttutor.tokenization import PAD_ID
from ttutor.tokenization.subword import SubwordTokenizer
from ttutor.training.batching import TokenPair
from ttutor.training.recipe import TrainingRecipe
from ttutor.transformer import TransformerConfig

SHORTEST_POSITIONS = 256
"""The model knows at least this many positions, whatever the longest training sentence."""


def train_tokenizer(corpus: Corpus, recipe: TrainingRecipe) -> SubwordTokenizer:
    """Learn one vocabulary for both languages, from the training pairs alone, prepared as they will be."""
    prepare = corpus.style().prepare
    sentences = (sentence for source, target in corpus.train for sentence in (prepare(source), target))
    return SubwordTokenizer.train(sentences, recipe.vocab_size)


def token_pairs(
    pairs: Sequence[Pair],
    tokenizer: SubwordTokenizer,
    max_tokens: int,
    purpose: str = "training",
    style: TextStyle | None = None,
) -> tuple[list[TokenPair], int]:
    """Token ids of all pairs that are short enough, and the number of those that are not.

    `purpose` says in messages what the pairs are for: "training" or "validation". Sources are prepared by the `style`
    of the training text, as a translator prepares what it is given later; without one they are taken as they stand.
    """
    sources = tokenizer.encode_all([style.prepare(source) if style else source for source, _ in pairs])
    targets = tokenizer.encode_all([target for _, target in pairs])
    encoded: list[TokenPair] = list(zip(sources, targets, strict=True))
    kept = [pair for pair in encoded if max(map(len, pair)) <= max_tokens]
    if not kept:
        raise InputError(
            f"none of the {len(pairs):,} {purpose} pairs has at most max_tokens={max_tokens} tokens on each side; "
            "raise max_tokens or give shorter sentences"
        )
    return kept, len(encoded) - len(kept)


def model_config(recipe: TrainingRecipe, vocab_size: int) -> TransformerConfig:
    """The model that a recipe describes, for a vocabulary of this size."""
    return TransformerConfig(
        vocab_size=vocab_size,
        d_model=recipe.d_model,
        n_heads=recipe.n_heads,
        n_layers=recipe.n_layers,
        d_ff=recipe.d_ff,
        dropout=recipe.dropout,
        norm=recipe.norm,
        max_len=max(SHORTEST_POSITIONS, recipe.max_tokens + 1),
        pad_id=PAD_ID,
    )
