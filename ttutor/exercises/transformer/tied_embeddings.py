"""Exercise: one table that embeds the tokens and projects to the vocabulary."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ttutor.exercises.exercise import Case, Exercise, Mistake
from ttutor.exercises.transformer import tied_embeddings_mistakes as wrong
from ttutor.exercises.transformer.tied_embeddings_probes import PROPERTIES, observe, view


class TiedEmbedding(nn.Module):
    """A table with one learned vector for each token, used at both ends of a model."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        ...

    def embed(self, token_ids: Int[Tensor, "batch tokens"]) -> Float[Tensor, "batch tokens d_model"]:
        """Give each token its vector."""
        ...

    def to_logits(self, hidden: Float[Tensor, "batch tokens d_model"]) -> Float[Tensor, "batch tokens vocab_size"]:
        """Give the dot product of each hidden vector with every token's vector."""
        ...


class Solution(nn.Module):
    """A table with one learned vector for each token, used at both ends of a model."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model)

    def embed(self, token_ids: Int[Tensor, "batch tokens"]) -> Float[Tensor, "batch tokens d_model"]:
        """Give each token its vector."""
        return self.table(token_ids)

    def to_logits(self, hidden: Float[Tensor, "batch tokens d_model"]) -> Float[Tensor, "batch tokens vocab_size"]:
        """Give the dot product of each hidden vector with every token's vector."""
        return hidden @ self.table.weight.T


class Reference(nn.Module):
    """Two modules of torch that hold one and the same parameter."""

    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        self.to_logits = nn.Linear(d_model, vocab_size, bias=False)
        self.to_logits.weight = self.embed.weight


def _sizes_and_hidden(generator):
    return 7, torch.randn(2, 3, 4, generator=generator)


EXERCISES = (
    Exercise(
        id="transformer.tied_embeddings",
        title="One table at both ends",
        statement="""
The Transformer paper embeds its tokens and projects to the vocabulary with the same matrix (section 3.4). Write the
module: `embed` looks up each token's vector, `to_logits` gives the dot product of each hidden vector with the vector of
every token. There is **one** learned table: a training step that changes what `to_logits` gives changes what `embed`
gives, and the gradients of both uses add up. No bias, no scale.
""".strip(),
        stub=TiedEmbedding,
        reference=Reference,
        solution=Solution,
        cases=(Case(name="seven tokens of width four", inputs=_sizes_and_hidden, points=3),),
        hints=(
            (
                "How many numbers should `parameters()` hold, for 7 tokens of width 4? And after a training step, what "
                "keeps two tables equal?"
            ),
            (
                "Equal numbers are not enough: an optimiser changes parameters, and two parameters get two different "
                "gradients. Keep a single one, and use it twice."
            ),
            (
                "Make an `nn.Embedding`. In `to_logits` multiply by the transpose of its weight; no second module is "
                "needed. If you prefer an `nn.Linear`, its weight must *be* the embedding's parameter."
            ),
        ),
        mistakes=(
            Mistake(
                id="two_tables",
                says="There are two tables, with nothing in common: the logits are no products with what `embed` "
                "gives. Use one parameter twice.",
                answers=(wrong.TwoTables,),
            ),
            Mistake(
                id="copied",
                says="The tables are equal now, but not tied: one is a copy, and the first training step moves them "
                "apart. Use one parameter twice.",
                answers=(wrong.Copied, wrong.CopiedParameter),
            ),
            Mistake(
                id="shared_storage",
                says="Two parameters share their memory. They move together, but an optimiser is handed twice as many "
                "numbers, and each parameter sees the gradient of one use only. Share the parameter, not its data.",
                answers=(wrong.SharedStorage,),
            ),
            Mistake(
                id="with_bias",
                says="The table is tied, but your projection has a bias besides: some more numbers to learn, which the "
                "exercise does not ask for.",
                answers=(wrong.WithBias,),
            ),
            Mistake(
                id="logits_detached",
                says="The table does not learn from the logits: in `to_logits` it has left the graph. Both uses should "
                "send their gradient.",
                answers=(wrong.LogitsDetached,),
            ),
            Mistake(
                id="embedding_detached",
                says="The table does not learn from the embeddings: in `embed` it has left the graph. Both uses should "
                "send their gradient.",
                answers=(wrong.EmbeddingDetached,),
            ),
            Mistake(
                id="hidden_detached",
                says="No gradient passes from the logits to the hidden vectors: all layers before them would learn "
                "nothing.",
                answers=(wrong.HiddenDetached,),
            ),
            Mistake(
                id="not_trained",
                says="The table is not among the parameters, so it would stay as it was drawn.",
                answers=(wrong.NotTrained,),
            ),
            Mistake(
                id="frozen",
                says="The table is a parameter, but one that asks for no gradient: it would stay as it was drawn.",
                answers=(wrong.Frozen,),
            ),
            Mistake(
                id="scaled",
                says="Your logits are the products with what `embed` gives, times a number: you scale one of the two "
                "by the root of the width. Some models do; here both use the table as it is.",
                answers=(wrong.ScaledLogits, wrong.ScaledEmbedding),
            ),
            Mistake(
                id="probabilities",
                says="Your rows sum to 1: these are probabilities. Logits are what goes into the softmax.",
                answers=(wrong.Probabilities,),
            ),
            Mistake(
                id="cosines",
                says="You normalise the vectors, so all logits lie between -1 and 1. The lengths count too.",
                answers=(wrong.Cosines,),
            ),
            Mistake(
                id="all_zeros",
                says="Your table begins with zeros, so all tokens are the same, and no gradient tells them apart. Draw "
                "it at random.",
                answers=(wrong.AllZeros,),
            ),
            Mistake(
                id="first_token_is_padding",
                says="Token 0 is embedded as zeros. Here it is a token like any other.",
                answers=(wrong.FirstTokenIsPadding,),
            ),
            Mistake(
                id="writes_into_the_table",
                says="Calling `embed` changes the table: after it, the logits of the same hidden vectors are others.",
                answers=(wrong.WritesIntoTheTable,),
            ),
        ),
        properties=PROPERTIES,
        observe=observe,
        view=view,
        forbids=("TokenEmbedding", "Transformer"),
        difficulty=2,
        minutes=15,
        section="07-transformer",
    ),
)
