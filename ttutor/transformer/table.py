"""A small table of labels and quantities, as text and as HTML."""

from dataclasses import dataclass, field
from html import escape

PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")
CAPTION = "caption-side: top; text-align: left; font-weight: bold"


@dataclass(frozen=True)
class Section:
    """A part of a table under its own title.

    Attributes:
        title: what the rows have in common.
        rows: label, quantity and remark of each.
    """

    title: str
    rows: list[tuple[str, str, str]] = field(default_factory=list)


def quantity(value: int | float, unit: str) -> str:
    """Three significant digits and a decimal prefix: 1 kB is 1000 bytes.

    Example:
        >>> quantity(1_342_177_280, "B"), quantity(999_600, "FLOP"), quantity(0, "B")
        ('1.34 GB', '1.00 MFLOP', '0 B')
    """
    power = 0
    while abs(value) >= 999.5 and power < len(PREFIXES) - 1:
        value, power = value / 1000, power + 1
    if power == 0:
        return f"{value:.0f} {unit}"
    decimals = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:,.{decimals}f} {PREFIXES[power]}{unit}"


def share(part: int, whole: int) -> str:
    """A part of a whole in per cent.

    Example:
        >>> share(1, 3)
        '33.3 %'
    """
    return f"{100 * part / whole:.1f} %"


def to_text(sections: list[Section]) -> str:
    """The sections one below another, their columns aligned.

    Example:
        >>> print(to_text([Section("Fruit", [("apples", "12", ""), ("pears", "7", "ripe")])]))
        Fruit
          apples  12
          pears    7  ripe
    """
    rows = [row for section in sections for row in section.rows]
    labels, values = (max(len(row[column]) for row in rows) for column in (0, 1))
    lines = []
    for section in sections:
        lines.append(section.title)
        lines += [f"  {a:<{labels}}  {b:>{values}}  {c}".rstrip() for a, b, c in section.rows]
    return "\n".join(lines)


def to_html(sections: list[Section]) -> str:
    """The same as HTML: a table for each section, under the section's title."""
    return "\n".join(map(_table, sections))


def _table(section: Section) -> str:
    lines = ["<table>", f'<caption style="{CAPTION}">{escape(section.title)}</caption>']
    for label, value, remark in section.rows:
        cells = f'<td style="text-align: right">{escape(value)}</td><td style="padding-left: 1em">{escape(remark)}</td>'
        lines.append(
            f'<tr><th scope="row" style="text-align: left; font-weight: normal">{escape(label)}</th>{cells}</tr>'
        )
    return "\n".join([*lines, "</table>"])
