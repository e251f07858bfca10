"""A learned table: one vector for each position, and nothing beyond the last of them."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from ttutor.names import Answering
from ttutor.shapes import has_values


class LearnedPositions(Answering, nn.Module):
    """A table with one learned vector for each position, as in BERT and GPT-2; it knows nothing beyond its last row.

    Gehring et al. (2017); Vaswani et al. (2017), table 3, row E, found it as good as the waves within its length.

    Args:
        d_model: width of each vector.
        max_len: number of rows of the table.
    """

    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        self.max_len = max_len
        self.table = nn.Embedding(max_len, d_model)
        nn.init.normal_(self.table.weight, std=0.02)

    def forward(self, positions: Int[Tensor, "batch tokens"]) -> Float[Tensor, "batch tokens d_model"]:
        """The vectors of these positions."""
        check_range(positions, self.max_len)
        return self.table(positions)


def check_range(positions: Int[Tensor, "batch tokens"], max_len: int) -> None:
    """Refuse positions outside the table; only on a CPU, since a GPU would have to be waited for."""
    if not has_values(positions) or positions.numel() == 0:
        return
    low, high = (int(bound) for bound in positions.aminmax())
    if low < 0 or high >= max_len:
        raise ValueError(f"positions run from {low} to {high}, but this module knows 0 to {max_len - 1}")
