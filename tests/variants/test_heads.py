"""What stands on an encoder learns: a class read at [CLS]."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from ttutor.training.fit import fit
from ttutor.variants.bert import BERT, BERTConfig
from ttutor.variants.heads import TransformerForSequenceClassification

PRAISE = ["good", "fine", "lovely", "great", "brilliant", "charming"]
BLAME = ["bad", "poor", "dull", "awful", "boring", "silly"]
PAD, CLS = "[PAD]", "[CLS]"


def reviews() -> tuple[list[list[str]], Tensor]:
    """Every "[CLS] the film was not very good" there is, and whether it is praise: a "not" or "never" turns it."""
    parts = product(["film", "book", "play", "song"], ["", "not", "never"], ["", "very"], PRAISE + BLAME)
    texts = [([CLS, "the", thing, "was", turn, much, word], bool(turn)) for thing, turn, much, word in parts]
    is_praise = [(words[-1] in PRAISE) != is_turned for words, is_turned in texts]
    return [[word for word in words if word] for words, _ in texts], torch.tensor(is_praise).long()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (1, 2))])
def test_a_classifier_on_the_class_token_learns_what_no_single_word_says(seed: int) -> None:
    """Half of the reviews are labelled. The best single word is right in two of three: "good" is turned in as many."""
    texts, is_praise = reviews()
    index = {word: number for number, word in enumerate([PAD, *sorted({word for text in texts for word in text})])}
    token_ids = torch.tensor([[index[word] for word in text + [PAD] * (7 - len(text))] for text in texts])
    torch.manual_seed(seed)
    order = torch.randperm(len(texts))
    labelled, new = order[: len(order) // 2], order[len(order) // 2 :]
    sizes = {"d_model": 32, "n_heads": 4, "n_layers": 2, "d_ff": 64, "max_len": 7, "dropout": 0.0}
    bert = BERT(BERTConfig(vocab_size=len(index), **sizes))
    model = TransformerForSequenceClassification(bert, 32, 2, dropout=0.0)

    def loss(model: torch.nn.Module, rows: Tensor) -> Tensor:
        return functional.cross_entropy(model(token_ids[rows], token_ids[rows] != index[PAD]), is_praise[rows])

    steps = 300
    batches = [labelled[torch.randint(len(labelled), (32,))] for _ in range(steps)]
    fit(model, batches, loss, steps=steps, learning_rate=lambda step: 1e-3 * min(1, step / 30))
    with torch.no_grad():
        said = model(token_ids[new], token_ids[new] != index[PAD]).argmax(dim=-1)
    assert (said == is_praise[new]).double().mean() >= 0.95
