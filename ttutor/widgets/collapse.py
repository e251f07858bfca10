"""All words become equal: what a stack of layers leaves of the differences between words."""

from typing import Any

import traitlets as t

from ttutor import assets
from ttutor.widgets.base import Explorer, table_html, within

RUNS = ("attention", "skips", "networks", "both")
"""The recorded stacks: attention alone, with skips, with feed-forward networks, with both."""


class CollapseExplorer(Explorer):
    r"""A sentence's words as dots: drag the depth, and see whether they fall together.

    Each word is where its vector lies among the others' in a fresh stack of eight layers: the difference from the
    common mean, relative to the length of all, in the plane in which the words differ most. The spread is
    $\lVert X - \mathbf{1}\,m \rVert / \lVert X \rVert$, from 0 to 1, where $m$ is the mean of the words. Recorded by
    ``experiments/encoder_collapse.py``.

    Args:
        depth: how many layers the words have gone through.
        skips: whether each sublayer's output is added to what it read.
        networks: whether a feed-forward network follows each attention.

    >>> CollapseExplorer(depth=4)
    CollapseExplorer(9 words after 4 of 8 layers, spread 0.00)
    >>> CollapseExplorer(depth=4, skips=True).spread
    0.828
    """

    _module = "collapse"
    _title = "All words become equal"

    tokens = t.List(t.Unicode(), read_only=True).tag(sync=True)
    places = t.Dict(read_only=True, help="by run: depths words (x, y)").tag(sync=True)
    spreads = t.Dict(read_only=True, help="by run: one for each depth").tag(sync=True)
    depth = t.Int(0).tag(sync=True)
    skips = t.Bool(False).tag(sync=True)
    networks = t.Bool(False).tag(sync=True)

    def __init__(self, *, depth: int = 0, skips: bool = False, networks: bool = False) -> None:
        asset = assets.load("encoder_collapse")
        self.set_trait("tokens", asset["tokens"])
        for trait, stored in (("places", "places"), ("spreads", "spread")):
            self.set_trait(trait, {run: asset["runs"][run][stored] for run in RUNS})
        super().__init__(depth=depth, skips=skips, networks=networks)

    @property
    def run(self) -> str:
        """Which of the recorded stacks is shown."""
        return RUNS[self.skips + 2 * self.networks]

    @property
    def spread(self) -> float:
        """How far the words lie from their common mean, relative to their size."""
        return self.spreads[self.run][self.depth]

    def describe(self) -> str:
        """How far it is, and what is left."""
        return f"{len(self.tokens)} words after {self.depth} of {self._n_layers} layers, spread {self.spread:.2f}"

    def fallback_html(self) -> str:
        """The spread of each stack, layer by layer."""
        names = ("attention alone", "with skips", "with networks", "with both")
        rows: list[list[Any]] = [
            [name, *(f"{value:.2f}" for value in self.spreads[run])] for name, run in zip(names, RUNS, strict=True)
        ]
        caption = (
            "How far the words lie from their common mean, relative to their size, after each layer: 0 is all equal."
        )
        return table_html(caption, ["layers", *map(str, range(self._n_layers + 1))], rows)

    @property
    def _n_layers(self) -> int:
        return len(self.spreads["both"]) - 1

    @t.validate("depth")
    def _check_depth(self, proposal: dict) -> int:
        return within("depth", proposal["value"], 0, self._n_layers, "it counts the layers")
