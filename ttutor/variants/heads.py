"""What stands on an encoder: one vector for a whole text, classifiers of texts and of tokens, masked tokens filled in.

They ask little of the encoder: a module that is called with ``token_ids`` and ``is_real`` (and ``segment_ids``, where
they are given) and answers with one hidden vector for each token, as `ttutor.variants.bert.BERT` does.
"""

import torch
from einops import einsum, reduce
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ttutor.layers import ACTIVATIONS, LayerNorm
from ttutor.shapes import check_shapes

__all__ = [
    "MaskedTokenHead",
    "Pooler",
    "TransformerForSequenceClassification",
    "TransformerForTokenClassification",
    "first_token",
    "initialise_normal",
    "mean_over_tokens",
]

POOLINGS = ("cls", "mean")


def first_token(
    hidden: Float[Tensor, "batch tokens d_model"], is_real: Bool[Tensor, "batch tokens"] | None = None
) -> Float[Tensor, "batch d_model"]:
    """The vector of each text's first real token, which BERT and ViT keep for the class: ``[CLS]``.

    Example:
        >>> hidden = torch.tensor([[[1.0], [2.0], [3.0]]])
        >>> first_token(hidden, torch.tensor([[False, True, True]]))  # padded on the left
        tensor([[2.]])
    """
    if is_real is None:
        return hidden[:, 0]
    check_shapes(hidden=(hidden, "batch tokens d_model"), is_real=(is_real, "batch tokens"))
    rows = torch.arange(hidden.shape[0], device=hidden.device)
    return hidden[rows, is_real.int().argmax(dim=-1)]


def mean_over_tokens(
    hidden: Float[Tensor, "batch tokens d_model"], is_real: Bool[Tensor, "batch tokens"] | None = None
) -> Float[Tensor, "batch d_model"]:
    """The mean of the vectors of each text's real tokens; zeros for a text that has none.

    Example:
        >>> hidden = torch.tensor([[[1.0], [2.0], [30.0]]])
        >>> mean_over_tokens(hidden, torch.tensor([[True, True, False]]))
        tensor([[1.5000]])
    """
    if is_real is None:
        return reduce(hidden, "batch tokens d_model -> batch d_model", "mean")
    check_shapes(hidden=(hidden, "batch tokens d_model"), is_real=(is_real, "batch tokens"))
    share = is_real.to(hidden.dtype) / is_real.sum(dim=-1, keepdim=True).clamp(min=1)
    return einsum(share, hidden, "batch tokens, batch tokens d_model -> batch d_model")


class Pooler(nn.Module):
    r"""A map with a squashing between an encoder's class token and what is made of it: $\tanh(h W + b)$.

    In Devlin et al.'s (2019) code it stands under every classifier of a whole text; in Dosovitskiy et al. (2021),
    section 3.1, it is the hidden layer of the classifier of pre-training.

    Args:
        d_model: width of what comes in and goes out.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.map = nn.Linear(d_model, d_model)
        initialise_normal(self)

    def forward(self, vectors: Float[Tensor, "batch d_model"]) -> Float[Tensor, "batch d_model"]:
        """Transform the vector of each text."""
        return torch.tanh(self.map(vectors))


class MaskedTokenHead(nn.Module):
    """Logits of the token that stood where a hidden vector is: a map, a norm, and the embedding table read backwards.

    Devlin et al. (2019), section 3.1, task 1; the map and the norm are in the authors' code alone.

    Args:
        table: the token embedding, which the output projection shares.
        activation: of the map, one of `ttutor.layers.ACTIVATIONS`.
    """

    def __init__(self, table: nn.Embedding, activation: str = "gelu") -> None:
        super().__init__()
        vocab_size, d_model = table.weight.shape
        self.transform = initialise_normal(nn.Linear(d_model, d_model))
        self.activation = ACTIVATIONS[activation]
        self.norm = LayerNorm(d_model, eps=1e-12)
        self.to_logits = nn.Linear(d_model, vocab_size)
        self.to_logits.weight = table.weight
        nn.init.zeros_(self.to_logits.bias)

    def forward(self, hidden: Float[Tensor, "... d_model"]) -> Float[Tensor, "... vocab_size"]:
        """Logits over the vocabulary for each hidden vector."""
        return self.to_logits(self.norm(self.activation(self.transform(hidden))))


class TransformerForSequenceClassification(nn.Module):
    """Tells the class of a whole text: the encoder's vectors, pooled to one, and a linear map on it.

    Devlin et al. (2019), section 4.1.

    Args:
        encoder: gives the hidden vectors.
        d_model: their width.
        n_classes: how many classes there are.
        pooling: ``"cls"``, the first token (through the encoder's own ``pool`` where it has one, as BERT has), or
            ``"mean"``, all real tokens.
        dropout: probability of dropping a feature of the pooled vector while training.

    Example:
        >>> from ttutor.variants.bert import BERT, BERTConfig
        >>> bert = BERT(BERTConfig(vocab_size=50, d_model=12, n_heads=3, n_layers=2, d_ff=48, max_len=16))
        >>> TransformerForSequenceClassification(bert, d_model=12, n_classes=3)(torch.tensor([[2, 7, 3]])).shape
        torch.Size([1, 3])
    """

    def __init__(
        self, encoder: nn.Module, d_model: int, n_classes: int, *, pooling: str = "cls", dropout: float = 0.1
    ) -> None:
        super().__init__()
        if pooling not in POOLINGS:
            raise ValueError(f"pooling must be one of {list(POOLINGS)}, but is {pooling!r}")
        self.encoder = encoder
        self.pooling = pooling
        self.dropout = nn.Dropout(dropout)
        self.classifier = initialise_normal(nn.Linear(d_model, n_classes))

    def forward(
        self,
        token_ids: Int[Tensor, "batch tokens"],
        is_real: Bool[Tensor, "batch tokens"] | None = None,
        segment_ids: Int[Tensor, "batch tokens"] | None = None,
    ) -> Float[Tensor, "batch n_classes"]:
        """Logits of the classes for each text; arguments as for the encoder."""
        hidden = _hidden(self.encoder, token_ids, is_real, segment_ids)
        pool = mean_over_tokens if self.pooling == "mean" else getattr(self.encoder, "pool", first_token)
        return self.classifier(self.dropout(pool(hidden, is_real)))


class TransformerForTokenClassification(nn.Module):
    """Tags tokens: a linear map on each of the encoder's vectors. What it says about padding means nothing.

    Devlin et al. (2019), section 5.3, where the tags are named entities.

    Args:
        encoder, d_model, n_classes, dropout: as for `TransformerForSequenceClassification`.

    Example:
        >>> from ttutor.variants.bert import BERT, BERTConfig
        >>> bert = BERT(BERTConfig(vocab_size=50, d_model=12, n_heads=3, n_layers=2, d_ff=48, max_len=16))
        >>> TransformerForTokenClassification(bert, d_model=12, n_classes=5)(torch.tensor([[2, 7, 3]])).shape
        torch.Size([1, 3, 5])
    """

    def __init__(self, encoder: nn.Module, d_model: int, n_classes: int, *, dropout: float = 0.1) -> None:
        super().__init__()
        self.encoder = encoder
        self.dropout = nn.Dropout(dropout)
        self.classifier = initialise_normal(nn.Linear(d_model, n_classes))

    def forward(
        self,
        token_ids: Int[Tensor, "batch tokens"],
        is_real: Bool[Tensor, "batch tokens"] | None = None,
        segment_ids: Int[Tensor, "batch tokens"] | None = None,
    ) -> Float[Tensor, "batch tokens n_classes"]:
        """Logits of the tags for each token; arguments as for the encoder."""
        return self.classifier(self.dropout(_hidden(self.encoder, token_ids, is_real, segment_ids)))


def initialise_normal(module: nn.Module) -> nn.Module:
    """Start all matrices and tables of a module from a normal distribution (0.02 wide), biases at zero, as in BERT.

    Differs from the paper's code: it draws again what falls beyond two standard deviations.
    """
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=0.02)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
    return module


def _hidden(encoder: nn.Module, token_ids: Tensor, is_real: Tensor | None, segment_ids: Tensor | None) -> Tensor:
    """What the encoder makes of the texts; encoders without segments are not asked about them."""
    return encoder(token_ids, is_real) if segment_ids is None else encoder(token_ids, is_real, segment_ids)
