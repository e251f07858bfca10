"""The plotting words of the course: a result becomes a figure or a table in one call.

``Lines``, ``Points``, ``Bars``, ``Scatter`` and ``Heatmap`` take what was measured, as mappings from a name to
numbers, and the words of the axes. ``Panels`` puts several of them into one figure, ``Table`` sets numbers in
rows, ``Picture`` shows an image, ``Sketch`` is drawn by hand. As the last line of a cell each shows itself: as SVG
that follows the page between light and dark, with a description computed from the data for readers who do not see
it.

>>> from ttutor.figures import Lines
>>> Lines({"with": [1.0, 0.5, 0.1], "without": [1.0, 0.9, 0.9]}, title="The mask helps", x="step", y="loss")
Figure: The mask helps. Lines of loss over step, 0 to 2: with, without.
"""

from ttutor.figures.bars import Bars
from ttutor.figures.heatmap import Heatmap
from ttutor.figures.lines import Lines
from ttutor.figures.picture import Picture
from ttutor.figures.plot import Panels, Plot
from ttutor.figures.points import Points, Scatter
from ttutor.figures.sketch import Sketch
from ttutor.figures.table import Table, span
from ttutor.names import answer_other_names

__all__ = ["Bars", "Heatmap", "Lines", "Panels", "Picture", "Plot", "Points", "Scatter", "Sketch", "Table", "span"]

answer_other_names(__name__)
