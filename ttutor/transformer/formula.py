"""Whole numbers that know how they were made, so that a formula is written once: as code, and shown from there."""

import math
from collections import Counter
from collections.abc import Mapping

__all__ = ["Formula"]

Factors = tuple[str, ...]


class Formula(int):
    """A number with the sum of products that gives it; adding and multiplying keeps both.

    Args:
        value: the number.
        terms: each product, as the names and bracketed sums that are its factors, with its whole coefficient.

    Example:
        >>> width, n_heads = Formula.named(8, "d"), Formula.named(2, "h")
        >>> made = 2 * width * (n_heads + 1) + width
        >>> made == 56, made.text
        (True, '2 × d × (h + 1) + d')
    """

    terms: dict[Factors, int]

    def __new__(cls, value: int, terms: Mapping[Factors, int]) -> "Formula":
        """Join the number and its terms, those that cancel left out."""
        made = super().__new__(cls, value)
        made.terms = {factors: n for factors, n in terms.items() if n}
        return made

    @classmethod
    def named(cls, value: int, name: str) -> "Formula":
        """A number that a formula calls by its name."""
        return cls(value, {(name,): 1})

    @property
    def text(self) -> str:
        """The formula: whole numbers, names, `+`, `−`, `×` and brackets."""
        text = ""
        for factors, n in self.terms.items():
            number = [] if abs(n) == 1 and factors else [str(abs(n))]
            text += (" + " if n > 0 else " − ") + " × ".join([*number, *factors])
        return text.removeprefix(" + ") or "0"

    def __add__(self, other: int) -> "Formula":
        terms = Counter(self.terms)
        terms.update(other.terms if isinstance(other, Formula) else {(): int(other)})
        return Formula(int(self) + int(other), terms)

    __radd__ = __add__

    def __sub__(self, other: int) -> "Formula":
        return self + -1 * other

    def __mul__(self, other: int) -> "Formula":
        if not isinstance(other, int):
            return NotImplemented
        if not isinstance(other, Formula):
            return Formula(int(self) * other, {factors: n * other for factors, n in self.terms.items()})
        (mine, n), (theirs, m) = self._as_product(), other._as_product()
        factors = sorted(mine + theirs, key=lambda factor: factor.startswith("("))  # sums last, names as they came
        return Formula(int(self) * int(other), {_together(factors): n * m})

    __rmul__ = __mul__

    def _as_product(self) -> tuple[Factors, int]:
        """The one product that this is, several terms as one factor in brackets."""
        if len(self.terms) < 2:
            return next(iter(self.terms.items()), ((), 0))
        shared = math.gcd(*self.terms.values())
        return (f"({Formula(0, {factors: n // shared for factors, n in self.terms.items()}).text})",), shared


def _together(factors: list[str]) -> Factors:
    """The same factors with equal ones side by side, at the place of the first."""
    return tuple(factor for one in dict.fromkeys(factors) for factor in [one] * factors.count(one))
