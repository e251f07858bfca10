"""How order is told: waves as a table and as clock hands, products by distance, rotary pairs, ALiBi's slopes."""

import math
import warnings
from typing import Any

import numpy as np
import torch
import traitlets as t
from einops import rearrange

from ttutor.attention import attention_weights
from ttutor.positions import AlibiPositions, RotaryPositions, alibi_slopes, rotary_frequencies, sinusoidal_encoding
from ttutor.widgets.base import Explorer, number_array, rounded_array, table_html, within

VIEWS = ("table", "clocks", "similarity", "rotary", "alibi")
READS = ("fast", "turn", "slow", "all")
RANGES = {
    "length": (2, 64), "d_model": (4, 64), "position": (0, 63), "tolerance": (0.05, 1), "offset": (-63, 63),
    "query_position": (0, 63), "key_position": (0, 63), "pair": (0, 3), "n_heads": (1, 16), "head": (1, 16),
    "distance": (0, 63),
}  # fmt: skip
MAX_OWN = (48, 32)
"""Positions and features of a reader's own table that are shown."""
D_ROTARY = 8
"""The head whose four pairs the rotary view offers: they turn by 1, 0.1, 0.01 and 0.001 radians."""
SEED = 2017


class PositionsExplorer(Explorer):
    """Five ways to look at how a model is told the order of its tokens; one of them is shown at a time.

    ``table``: the waves, one row a position, one column a feature. ``clocks``: each pair of features as a hand, and
    which positions the hands leave possible. ``similarity``: the products of positions by distance, before and after
    a random projection. ``rotary``: a query and a key that turn with their positions. ``alibi``: what each head takes
    off for distance. In Jupyter the traits follow the reader, and setting one from Python redraws the figure.

    Args:
        length: positions shown, 2 to 64.
        d_model: width of the vectors, even, 4 to 64.
        view: one of the five names above.
        table: ``positions features``, vectors of your own, such as a learned table (a tensor, an array or nested
            lists); rounded to four digits. It has the views ``table`` and ``similarity``. Of more than 48 positions
            or 32 features the first are shown, with a warning and a label; products are taken over all features.
        settings: any other trait, such as ``position``, ``reads`` (which hands: ``fast``, ``turn`` for the first that
            does not come round again, ``slow``, ``all``), ``tolerance`` (hands' tips closer than this look alike),
            ``projected``, ``query_position``, ``key_position``, ``query``, ``key``, ``n_heads``.

    >>> explorer = PositionsExplorer(length=32, view="clocks", reads="fast", position=4)
    >>> explorer
    PositionsExplorer(clocks, 32 positions, d_model 32)
    >>> explorer.candidates
    [4, 10, 23, 29]
    """

    _module = "positions"
    _title = "Positions"
    _settings = (
        "view", "length", "d_model", "selected", "position", "reads", "tolerance", "projected", "offset",
        "query_position", "key_position", "pair", "query", "key", "n_heads", "head", "distance",
    )  # fmt: skip
    _state_keys = (*_settings, "table", "products", "total")
    _made = False

    view = t.Enum(VIEWS, "table").tag(sync=True)
    length = t.Int(16).tag(sync=True)
    d_model = t.Int(32).tag(sync=True)
    selected = t.List(t.Int()).tag(sync=True)
    position = t.Int(5).tag(sync=True)
    reads = t.Enum(READS, "all").tag(sync=True)
    tolerance = t.Float(0.3).tag(sync=True)
    projected = t.Bool(False).tag(sync=True)
    offset = t.Int(1).tag(sync=True)
    query_position = t.Int(8).tag(sync=True)
    key_position = t.Int(5).tag(sync=True)
    pair = t.Int(0).tag(sync=True)
    query = t.List(t.Float(), [1.2, 0.5]).tag(sync=True)
    key = t.List(t.Float(), [0.8, -0.3]).tag(sync=True)
    n_heads = t.Int(8).tag(sync=True)
    head = t.Int(1).tag(sync=True)
    distance = t.Int(10).tag(sync=True)
    table = t.List(t.List(t.Float())).tag(sync=True)
    products = t.List(t.List(t.Float())).tag(sync=True)
    total = t.List(t.Int()).tag(sync=True)

    def __init__(
        self, length: int = 16, d_model: int = 32, view: str = "table", *, table: Any = None, **settings: Any
    ) -> None:
        unknown = sorted(set(settings) - set(self._settings))
        if unknown:
            raise TypeError(f"unknown setting {', '.join(unknown)}; there are {', '.join(self._settings)}")
        if table is not None:
            settings |= _own_table(table)
            d_model, length = 32, min(length, len(settings["table"]))
        super().__init__(length=length, d_model=d_model, view=view, **settings)
        self._made = True

    @property
    def encoding(self) -> np.ndarray:
        """What the table shows now, ``positions features``."""
        if self.table:
            return np.array(self.table)[: self.length]
        return sinusoidal_encoding(self.length, self.d_model).double().numpy()

    @property
    def candidates(self) -> list[int]:
        """The positions whose hands look like those at ``position``, for a reader of the hands that ``reads`` names."""
        return self.look_alike(self.reads)

    def look_alike(self, reads: str) -> list[int]:
        """The same for other hands: ``fast``, ``turn``, ``slow`` or ``all``."""
        encoding = sinusoidal_encoding(self.length, self.d_model).double()
        hands = rearrange(encoding, "positions (pairs two) -> positions pairs two", two=2)
        wavelengths = 2 * math.pi / rotary_frequencies(self.d_model)
        once = int((wavelengths >= self.length).nonzero()[0])
        read = {"fast": slice(1), "turn": slice(once, once + 1), "slow": slice(-1, None), "all": slice(None)}
        seen = hands[:, read[reads]]
        apart = (seen - seen[min(self.position, self.length - 1)]).norm(dim=-1).amax(dim=-1)
        return (apart < self.tolerance).nonzero().flatten().tolist()

    @property
    def similarity(self) -> np.ndarray:
        """The product of each position with each other, ``positions positions``, as the figure shows it now."""
        if self.table:
            n = self.length
            return np.array([[self.products[min(p, q)][abs(q - p)] for q in range(n)] for p in range(n)])
        vectors = torch.from_numpy(self.encoding)
        to_query, to_key = random_weights(self.d_model) if self.projected else [torch.eye(self.d_model).double()] * 2
        return ((vectors @ to_query) @ (vectors @ to_key).T).numpy()

    @property
    def score(self) -> float:
        """The rotary score of ``query`` and ``key`` at their positions, for the pair that turns as ``pair`` says."""
        return self.score_at(self.query_position, self.key_position)

    def score_at(self, query_position: int, key_position: int) -> float:
        """The same at other positions."""
        rotary = RotaryPositions(2, frequencies=rotary_frequencies(D_ROTARY)[[self.pair]])
        query, key = (
            rotary(torch.tensor([[place]]))(rearrange(torch.tensor(vector, dtype=torch.float64), "pair -> 1 1 1 pair"))
            for place, vector in ((query_position, self.query), (key_position, self.key))
        )
        return float((query * key).sum())

    @property
    def bias(self) -> np.ndarray:
        """What ALiBi adds to a score, ``heads distances``."""
        places = torch.arange(self.length)[None]
        return AlibiPositions(self.n_heads).double()(torch.zeros(1, 1, dtype=torch.long), places)[0, :, 0].numpy()

    @property
    def alibi_weights(self) -> np.ndarray:
        """The weights that ALiBi alone makes of equal scores, ``heads distances``, each row summing to 1."""
        equal = torch.zeros(self.n_heads, 1, 1, dtype=torch.float64)
        keys = torch.zeros(self.n_heads, self.length, 1, dtype=torch.float64)
        return attention_weights(equal, keys, bias=torch.from_numpy(self.bias)[:, None])[:, 0].numpy()

    def describe(self) -> str:
        """The view and the sizes."""
        width = f"{self.total[1]} features of a table" if self.table else f"d_model {self.d_model}"
        return f"{self.view}, {self.length} positions, {width}"

    def fallback_html(self) -> str:
        """The numbers of the view as a table; of large ones, the first."""
        return table_html(*_PLAIN[self.view](self))

    @t.validate(*RANGES)
    def _check_range(self, proposal: dict) -> float | int:
        name, value = proposal["trait"].name, proposal["value"]
        low, high = RANGES[name]
        if name == "length" and self.table:
            high = len(self.table)
        within(name, value, low, high)
        if name == "d_model" and value % 2:
            raise ValueError(f"d_model has to be even, since features come in pairs, not {value}; try {value + 1}")
        return value

    @t.validate("query", "key")
    def _check_vector(self, proposal: dict) -> list[float]:
        return rounded_array(proposal["trait"].name, proposal["value"], (2,), 3, axes="features")

    @t.validate("selected")
    def _check_selected(self, proposal: dict) -> list[int]:
        value = proposal["value"]
        if value and (len(value) != 2 or min(value) < -1 or max(value) < 0):
            raise ValueError(
                f"selected has to be [] or [position, feature], with -1 for a whole row or column: {value}"
            )
        return value

    @t.validate("view")
    def _check_view(self, proposal: dict) -> str:
        if self.table and proposal["value"] not in ("table", "similarity"):
            raise ValueError(f"a table of your own has the views table and similarity, not {proposal['value']!r}")
        return proposal["value"]

    @t.validate("table", "products", "total")
    def _check_fixed(self, proposal: dict) -> list:
        if self._made:
            raise ValueError("another table needs another figure: PositionsExplorer(table=...)")
        return proposal["value"]


def random_weights(width: int) -> list[torch.Tensor]:
    """A query and a key projection, ``width width``, from a generator that JavaScript can repeat number by number.

    Uniform with variance 1/width, from a linear congruential generator with Knuth's multiplier and a fixed seed.
    """
    state, numbers = SEED, []
    for _ in range(2 * width * width):
        state = (1_664_525 * state + 1_013_904_223) % 2**32
        numbers.append((state / 2**32 - 0.5) * math.sqrt(12 / width))
    both = torch.tensor(numbers, dtype=torch.float64)
    return list(rearrange(both, "(two rows columns) -> two rows columns", two=2, rows=width))


def _own_table(values: Any) -> dict[str, list]:
    """The part of a table that is shown, its products by distance over all features, and its whole size."""
    array = number_array("table", values)
    if array.ndim == 2 and len(array) == 1:
        raise ValueError("table has one position; there have to be at least 2 to compare")
    rounded_array("table", array, (None, None), 0, axes="positions, features")
    if array.shape[0] > MAX_OWN[0] or array.shape[1] > MAX_OWN[1]:
        warnings.warn(
            f"a table of {array.shape[0]} positions and {array.shape[1]} features is more than fits a screen; showing "
            f"the first {MAX_OWN[0]} positions and {MAX_OWN[1]} features",
            stacklevel=3,
        )
    vectors = array[: MAX_OWN[0]]
    with np.errstate(over="ignore"):
        products = vectors @ vectors.T
    shown = rounded_array("table", vectors[:, : MAX_OWN[1]], (None, None), _digits(vectors), axes="positions, features")
    flat = rounded_array("the table's products", products, (None, None), _digits(products), axes="positions, positions")
    return {"table": shown, "products": [row[p:] for p, row in enumerate(flat)], "total": list(array.shape)}


def _digits(values: np.ndarray) -> int:
    """How many digits after the point keep four digits of the largest number."""
    largest = np.abs(values).max()
    return int(np.clip(3 - math.floor(math.log10(largest)), 0, 9)) if 0 < largest < math.inf else 3


Plain = tuple[str, list[str], list[list[str]]]
"""A caption, the heads of the columns, and the rows."""


def _table(explorer: PositionsExplorer) -> Plain:
    shown = explorer.encoding[:16, :8]
    what = "A table of positions" if explorer.table else "Sinusoidal positions"
    n_positions, n_features = explorer.total or [explorer.length, explorer.d_model]
    caption = (
        f"{what}: each row is a position's vector, each column a feature; {len(shown)} of {n_positions} positions and "
        f"{shown.shape[1]} of {n_features} features."
    )
    rows = [[str(p), *(f"{value:.3f}" for value in row)] for p, row in enumerate(shown)]
    return caption, ["position", *map(str, range(shown.shape[1]))], rows


def _clocks(explorer: PositionsExplorer) -> Plain:
    names = {"fast": "fastest", "turn": "first that does not repeat", "slow": "slowest", "all": "all"}
    rows = [[name, ", ".join(map(str, explorer.look_alike(reads)))] for reads, name in names.items()]
    caption = (
        f"Each pair of features is a hand of a clock. Which of {explorer.length} positions look like position "
        f"{min(explorer.position, explorer.length - 1)} if tips closer than {explorer.tolerance:g} look the same?"
    )
    return caption, ["hands read", "positions that look alike"], rows


def _similarity(explorer: PositionsExplorer) -> Plain:
    products = explorer.similarity
    lines = [np.diagonal(products, k) for k in range(min(explorer.length, 16))]
    rows = [[str(k), f"{line.mean():.3f}", f"{line.std():.3f}"] for k, line in enumerate(lines)]
    what = "after random projections to queries and keys" if explorer.projected else "of the position vectors"
    caption = f"Products {what} that stand k apart: the mean over all positions, and how far they differ."
    return caption, ["distance k", "mean", "standard deviation"], rows


def _rotary(explorer: PositionsExplorer) -> Plain:
    turn = rotary_frequencies(8)[explorer.pair].item()
    m, n = explorer.query_position, explorer.key_position
    rows = [[str(m + by), str(n + by), str(m - n), f"{explorer.score_at(m + by, n + by):.3f}"] for by in (0, 1, 10)]
    rows.append([str(m + 1), str(n), str(m + 1 - n), f"{explorer.score_at(m + 1, n):.3f}"])
    radians = "radian" if turn == 1 else "radians"
    caption = (
        f"Rotary positions: query {explorer.query} and key {explorer.key} turn by {turn:g} {radians} a position. The "
        f"score stays while both move together."
    )
    return caption, ["query position m", "key position n", "m − n", "score"], rows


def _alibi(explorer: PositionsExplorer) -> Plain:
    slopes = alibi_slopes(explorer.n_heads).tolist()
    rows = [[str(h), f"{m:.4f}", f"{-m * explorer.distance:.3f}"] for h, m in enumerate(slopes, start=1)]
    caption = f"ALiBi with {explorer.n_heads} heads: each takes its slope times the distance off the score."
    return caption, ["head", "slope", f"added at distance {explorer.distance}"], rows


_PLAIN = {"table": _table, "clocks": _clocks, "similarity": _similarity, "rotary": _rotary, "alibi": _alibi}
