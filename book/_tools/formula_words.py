r"""Formulas as one line of plain text, to search in and to show in a list of results.

Not a renderer: what has no plain form keeps its name, so that ``\lambda`` can be found as λ and ``W^Q`` as W^Q.
"""

from __future__ import annotations

import re

GREEK_NAMES = """
alpha beta gamma delta epsilon varepsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau phi varphi chi psi
omega Gamma Delta Theta Lambda Sigma Phi Psi Omega
""".split()
SIGN_NAMES = """
cdot times le leq ge geq ne neq in to approx infty sum prod top odot pm lvert rvert lVert rVert mid partial nabla ldots
dots cdots sim propto rightarrow lfloor rfloor
""".split()
SIGNS = dict(zip(GREEK_NAMES, "αβγδεεζηθικλμνξπρστφφχψωΓΔΘΛΣΦΨΩ", strict=True))
SIGNS |= dict(zip(SIGN_NAMES, "·×≤≤≥≥≠≠∈→≈∞ΣΠᵀ⊙±||‖‖|∂∇………~∝→⌊⌋", strict=True))
SIGNS |= {"quad": " ", "qquad": " "}
DROPPED = re.compile(
    r"\\(?:left|right|big|Big|bigl|bigr|Bigl|Bigr|text|mathrm|mathbf|mathbb|mathcal|mathit|boldsymbol|operatorname\*?"
    r"|textstyle|displaystyle|limits|bar|hat|tilde|overline|label|tag|nonumber)(?![A-Za-z])|\\(?:begin|end)\{\w+\*?\}"
)
FRACTION = re.compile(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
ROOT = re.compile(r"\\sqrt\s*\{([^{}]*)\}")
INDEX = re.compile(r"([_^])\s*\{([^{}]*)\}")
COMMAND = re.compile(r"\\([A-Za-z]+)")


def plain_formula(latex: str) -> str:
    r"""Return a formula as plain text.

    >>> plain_formula(r"\frac{QK^\top}{\sqrt{d_\text{head}}}")
    'QK^ᵀ/√d_head'
    >>> plain_formula(r"h_\mathrm{kv} \le h, \lambda")
    'h_kv ≤ h, λ'
    """
    text = re.sub(r"\\(?:text|mathrm|mathbf|operatorname)\{([^{}]*)\}", r"{\1}", latex)
    text = DROPPED.sub("", text)
    text = re.sub(r"(\\l(?:vert|Vert|floor))\s+", r"\1{}", text)
    before = None
    while before != text:  # from the inside out
        before = text
        text = INDEX.sub(r"\1\2", ROOT.sub(r"√\1", FRACTION.sub(r"\1/\2", text)))
    text = COMMAND.sub(lambda m: SIGNS.get(m[1], m[1]) + ("" if m[1] in SIGNS else " "), text)
    text = re.sub(r"[{}]", "", text)
    text = re.sub(r"\\[,;:! ]|[&~]|\\\\|\\(?=\W)", " ", text)
    return re.sub(r"\s+([,.;)])", r"\1", " ".join(text.split()))
