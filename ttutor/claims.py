"""What popular accounts say about the Transformer, our verdict on each statement, and the measurement beside it.

``claims.toml`` holds the statements, one table each. A chapter comes to a statement, measures it, and writes::

    claim("ATT-03", measured={"largest |row sum - 1|": below(error, 1e-6)}, agrees=error < 1e-6)

which shows a callout. ``agrees`` says whether the measurement supports *our verdict* (not the statement): a statement
that we call wrong agrees when it was measured to be wrong. ``agrees=False`` fails the cell, so that the book cannot
go on saying what its own numbers contradict.
"""

import difflib
import html
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from ttutor.measurement import count_values, format_number, lines, magnitude, one_line, rounded
from ttutor.names import answer_other_names

VERDICTS: dict[str, str] = {
    "right": "right",
    "imprecise": "imprecise: true only with a condition",
    "wrong": "wrong",
    "contested": "contested: the evidence is divided",
    "out of scope": "out of scope: not something a measurement can decide",
}
"""Every verdict with the words that a callout shows."""

BADGES: dict[str, str] = {
    "right": "#00704F",
    "imprecise": "#7A5600",
    "wrong": "#B34700",
    "contested": "#00629B",
    "out of scope": "#5F6670",
}
"""Background of a verdict's badge: white text on each keeps a contrast of 4.5:1, on a light page and on a dark one."""

MIME = "application/vnd.ttutor.claim+json"
"""The type under which a notebook stores a claim's record beside what it shows."""

_TIGHT = ' style="margin:.4rem 0"'
_SENTENCE_END = re.compile(r"(?<=[.!?]) +(?=[^a-z(])")
_SHORTEST_GIST = 30
_MAX_NUMBERS = 64


class ClaimContradicted(AssertionError):
    """A measurement does not support the verdict that the book gives on a claim."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One falsifiable statement, and what is true of it.

    Attributes:
        id: a prefix for the chapter and a number, such as ``ATT-10``.
        chapter: the stem of the chapter that covers it, such as ``attention``.
        verdict: one of ``VERDICTS``.
        statement: what is often said, in our words.
        correct: what is true, and why.
        measure: how the chapter can measure it, in one line.
        sources: keys of the bibliography that the correct statement rests on.
    """

    id: str
    chapter: str
    verdict: str
    statement: str
    correct: str
    measure: str
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"claim {self.id} has verdict {self.verdict!r}; it has to be one of {', '.join(VERDICTS)}")


@dataclass(frozen=True, kw_only=True)
class ClaimResult:
    """A claim with what was measured: the callout that a notebook shows.

    Attributes:
        claim: the statement and our verdict.
        measured: what was measured, as rounded plain numbers, or ``None`` when the claim is only cited.
        source: the bibliography key that is cited, or ``None``.
    """

    claim: Claim
    measured: Any = None
    source: str | None = None

    def __repr__(self) -> str:
        said = [
            f"Claim {self.claim.id}: {self.claim.statement}",
            f"Verdict: {VERDICTS[self.claim.verdict]}.",
            f"What is true: {self.claim.correct}",
        ]
        if self.measured is not None:
            said.append(f"Measured here, and it agrees with this verdict: {one_line(self.measured)}")
        if self.source is not None:
            said.append(f"Source: {self.source} (see the bibliography)")
        return "\n".join(said)

    def _repr_html_(self) -> str:
        """The callout: what is said, our verdict and one sentence of what is true; the rest is folded.

        Plain paragraphs and lists first, which is all that GitHub keeps; colour only on top.
        """
        colour = BADGES[self.claim.verdict]
        badge = (
            f'<span style="background:{colour};color:#fff;border-radius:.25rem;padding:.1rem .45rem;'
            f'font-weight:600">{_escape(self.claim.verdict)}</span>'
        )
        gist, rest = in_short(self.claim.correct)
        folded = [f"<p{_TIGHT}>{_escape(rest)}</p>"] if rest else []
        if self.measured is not None:
            items = "".join(
                f"<li>{_escape(label) + ': ' if label else ''}<strong>{_escape(value)}</strong></li>"
                for label, value in lines(self.measured)
            )
            folded.append(
                _paragraph("Measured here", ", and it agrees with this verdict:") + f"<ul{_TIGHT}>{items}</ul>"
            )
        if self.source is not None:
            folded.append(_paragraph("Source:", f" {_escape(self.source)} (see the bibliography)"))
        return (
            f'<div class="ttutor-claim {verdict_class(self.claim.verdict)}" id="claim-{self.claim.id}" '
            f'style="border:1px solid #8a8f98;border-left:.35rem solid {colour};border-radius:.25rem;'
            'padding:.25rem 1rem;margin:.75rem 0">'
            + _paragraph("Often said:", f" <q>{_escape(self.claim.statement)}</q> {badge}")
            + f"<p{_TIGHT}>{_escape(gist)}</p>"
            + f"<details{_TIGHT}><summary>{'Measured' if self.measured is not None else 'Cited'}: "
            f"claim {self.claim.id}</summary>{''.join(folded)}</details></div>"
        )

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """What a machine reads in the stored output; the page of claims is made from it. HTML and text come beside."""
        return {
            MIME: {
                "claim": self.claim.id,
                "verdict": self.claim.verdict,
                "measured": None if self.measured is None else [list(line) for line in lines(self.measured)],
                "source": self.source,
            }
        }


@cache
def all_claims() -> dict[str, Claim]:
    """Every claim of the course by its id, in the order of the chapters.

    >>> all_claims()["ATT-03"].verdict
    'right'
    """
    rows = tomllib.loads((files("ttutor") / "claims.toml").read_text(encoding="utf-8"))
    return {id_: Claim(id=id_, **{**row, "sources": tuple(row.get("sources", ()))}) for id_, row in rows.items()}


def chapters() -> dict[str, tuple[Claim, ...]]:
    """The claims of each chapter, by the chapter's stem.

    >>> list(chapters())[:2], chapters()["attention"][0].id
    (['recurrence', 'attention'], 'ATT-01')
    """
    names = dict.fromkeys(claim.chapter for claim in all_claims().values())
    return {name: tuple(claim for claim in all_claims().values() if claim.chapter == name) for name in names}


def claim(
    claim_id: str, *, measured: Any = None, agrees: Any = None, source: str | None = None, digits: int = 3
) -> ClaimResult:
    """Show a claim with its verdict and with what was measured, and fail when the two disagree.

    Args:
        claim_id: which claim, such as ``"ATT-10"``.
        measured: what was measured: a number, text, or lists, tensors and mappings of them (label to value reads best).
        agrees: whether the measurement supports our verdict: one bool, given with ``measured`` and only with it.
        source: the bibliography key of the work that settles the claim; required when nothing is measured.
        digits: how many significant digits of a float are shown. Fewer for what another processor computes differently.

    Returns:
        The callout; as the last line of a cell it shows itself.

    Raises:
        ClaimContradicted: when ``agrees`` is False.
        KeyError: when there is no such claim; the message lists near matches.
        TypeError: when ``agrees`` is missing or not one bool, or ``measured`` cannot be shown.
        ValueError: when there is neither a measurement nor a source, or too many numbers to read.

    >>> claim("ATT-03", measured={"smallest weight": 0.0123456}, agrees=True).measured
    {'smallest weight': 0.0123}
    """
    entry = _look_up(claim_id)
    if measured is None and source is None:
        raise ValueError(f"claim {claim_id} needs measured=... with agrees=..., or source='key of the bibliography'")
    if source is not None and not (isinstance(source, str) and source.strip()):
        raise TypeError(f"source of claim {claim_id} has to be a key of the bibliography, not {source!r}")
    if measured is None:
        if agrees is not None:
            raise TypeError(f"claim {claim_id} has agrees={agrees!r} but measured nothing; leave agrees out or measure")
        return ClaimResult(claim=entry, source=source)
    plain = rounded(measured, digits)
    if not 0 < count_values(plain) <= _MAX_NUMBERS:
        raise ValueError(
            f"measured of claim {claim_id} holds {count_values(plain)} values; give between 1 and {_MAX_NUMBERS}, "
            f"such as the few that decide"
        )
    if not _as_bool(claim_id, agrees):
        raise ClaimContradicted(
            f"the measurement does not support the verdict on {claim_id}.\n"
            f"Claim: {entry.statement}\nOur verdict: {entry.verdict}. {entry.correct}\nMeasured: {one_line(plain)}"
        )
    return ClaimResult(claim=entry, measured=plain, source=source)


def below(value: Any, bound: float) -> str:
    """Words for a quantity that has to be tiny, the same on every machine: rounding errors differ in their digits.

    What is compared is the absolute value.

    Raises:
        ClaimContradicted: when it is not below the bound (or is not a number).
        ValueError: the value holds several numbers, or none.

    >>> below(3.6e-7, 1e-6)
    'below 1e-6'
    """
    number = magnitude(value)
    if not number < bound:
        raise ClaimContradicted(f"expected a value below {format_number(bound)}, measured {format_number(number)}")
    return f"below {format_number(bound)}"


def _look_up(claim_id: str) -> Claim:
    claims = all_claims()
    if claim_id in claims:
        return claims[claim_id]
    near = difflib.get_close_matches(str(claim_id).upper(), claims, n=5, cutoff=0.6)
    hint = f"near matches: {', '.join(near)}" if near else "ids look like ATT-10; all_claims() lists them"
    raise KeyError(f"no claim {claim_id!r}; {hint}")


def _as_bool(claim_id: str, agrees: Any) -> bool:
    """Exactly one bool: anything else that Python would call true makes a test that cannot fail."""
    value = agrees.detach().cpu().numpy() if hasattr(agrees, "detach") else agrees
    if isinstance(value, np.ndarray) and value.dtype == bool and value.size == 1:
        return bool(value.item())
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    what = f"{type(agrees).__name__} of shape {tuple(value.shape)}" if hasattr(value, "shape") else repr(agrees)
    raise TypeError(
        f"agrees of claim {claim_id} has to be one True or False, not {what}; "
        f"compare with a bound, and reduce with .all() or .any()"
    )


def verdict_class(verdict: str) -> str:
    """The class by which a page gives everything about a verdict its colour.

    >>> verdict_class("out of scope")
    'verdict-out-of-scope'
    """
    return f"verdict-{verdict.replace(' ', '-')}"


def in_short(text: str) -> tuple[str, str]:
    """The first sentence of a text (or as many as make a line, where the first has few words), and the others.

    >>> in_short("It depends on how the weights are drawn. A variance of one half is usual.")
    ('It depends on how the weights are drawn.', 'A variance of one half is usual.')
    """
    end = next((match for match in _SENTENCE_END.finditer(text) if match.start() >= _SHORTEST_GIST), None)
    return (text[: end.start()], text[end.end() :]) if end else (text, "")


def _paragraph(lead: str, markup: str) -> str:
    """One paragraph of a callout; the lead is what GitHub, which strips styles, still sets in bold."""
    return f"<p{_TIGHT}><strong>{lead}</strong>{markup}</p>"


def _escape(text: str) -> str:
    return html.escape(text, quote=True)


answer_other_names(__name__)
