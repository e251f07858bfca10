"""What a page of the book may load and run, as a content-security policy in its head.

Pages are made of our own text and of readers' input in the figures; no known way leads from either to a script. Should
one be found, the policy still lets nothing run that the build did not write, and nothing leave for another host.

It stands in the page itself (``<meta http-equiv>``), since a page on a disk has no server to send it. For such a page
browsers do not agree that ``'self'`` means the files beside it, so ``file:`` is named too; on a server it allows
nothing. What else is allowed, and why:

* scripts in the page, each by its hash; the two buttons of the theme with a handler in their tag likewise;
* scripts from ``data:`` and workers from ``blob:``: the figures travel as text within one script, because modules do
  not load from a disk, and train in a worker;
* styles in the page: MathJax, the icons and the drawings write their own, as attributes, which no hash covers;
* pictures and fonts from ``data:``, which outputs of notebooks and style sheets hold.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re

SCRIPT = re.compile(r"<script(?P<attributes>[^>]*)>(?P<text>.*?)</script>", re.DOTALL)
HANDLER = re.compile(r"""\son[a-z]+="(?P<text>[^"]*)\"""")
CHARSET = re.compile(r'<meta charset="utf-8" ?/?>')
META = re.compile(r'\n *<meta http-equiv="Content-Security-Policy"[^>]*>')
HERE = "'self' file:"


def with_policy(page: str) -> str:
    """Return a page with the policy that it keeps; a second time changes nothing.

    >>> page = '<head><meta charset="utf-8"></head><script>go()</script>'
    >>> print(with_policy(page).split('"')[5].split("; ")[1])
    script-src 'self' file: data: 'sha256-5KYv+PUboo5h+0+YAtGRPbwv5d/QxzHslP4YGnUaxRw='
    """
    page = META.sub("", page)
    scripts = [found["text"] for found in SCRIPT.finditer(page) if " src=" not in found["attributes"]]
    handlers = [html.unescape(found["text"]) for found in HANDLER.finditer(SCRIPT.sub("", page))]
    rules = {
        "default-src": "'none'",
        "script-src": " ".join([HERE, "data:", *_hashes(scripts), *_hashes(handlers, "'unsafe-hashes'")]),
        "worker-src": "blob:",
        "style-src": f"{HERE} 'unsafe-inline'",
        "img-src": f"{HERE} data:",
        "font-src": f"{HERE} data:",
        "form-action": HERE,
        "base-uri": "'none'",
    }
    policy = "; ".join(f"{name} {value}" for name, value in rules.items())
    return CHARSET.sub(rf'\g<0>\n    <meta http-equiv="Content-Security-Policy" content="{policy}" />', page, count=1)


def _hashes(texts: list[str], word: str = "") -> list[str]:
    """Their hashes as the policy writes them, after a word that lets handlers have them."""
    found = sorted({base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts})
    return [*([word] if word and found else []), *(f"'sha256-{one}'" for one in found)]
