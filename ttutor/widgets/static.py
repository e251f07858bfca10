"""Turn the explorers' ES modules into text that a browser runs, in Jupyter and in a page without a kernel."""

import base64
import gzip
import json
import re
from collections.abc import Collection
from functools import cache
from importlib.resources import files
from pathlib import Path

from ttutor.widgets.style import OUTLINES, OUTLINES_DARK, PALETTE, PALETTE_DARK

_SHARED = ("core", "controls", "drawing")
"""In the order in which they stand on one another."""
_OWN = {
    "translator": ("translator_model",),
    "playground": ("playground_model", "playground_tasks", "playground_words", "playground_pictures"),
}
"""Parts that one explorer has for itself."""
_APART = ("translator", "playground", "blocks", "patches")
"""Explorers so large that a book's pages load them only where they stand, from a script beside that of all others."""
_PARTS = {*_SHARED, *(part for parts in _OWN.values() for part in parts)}
_IMPORT = re.compile(rf'^import\s*\{{[^}}]*\}}\s*from\s*"\./({"|".join(sorted(_PARTS))})\.js";\n', re.MULTILINE)
_UNREAD = re.compile(r"^\s*(?://.*|/\*[\s\S]*?\*/)\n|^[ \t]+|[ \t]+// [^\"`\n]*$", re.MULTILINE)
"""Comments and indentation: a browser does without, and no text of ours begins with a blank."""
_UNMISSED = re.compile(r"^((?!.*//).*)(?:(?<=[{,;(\[])\n|\n(?=[})\]?:.]))", re.MULTILINE)
"""Ends of lines at which no statement can end, or at which one ends without them."""
_IDLE = re.compile(
    r" (=>|[!=]==|&&|\|\||\?\??|[-+*<>]=|:) |(?<=[\w)\]]) ([<>*/]) (?=[\w(\[])|((?:const|let) \w+) (=) |"
    r"(?<=\{) | (?=\})|,(?=\n?[}\])])|;(?=\n?\})"
)
"""Blanks, commas and semicolons without which code and styles are the same, where no text of ours has them."""
_PLAIN = re.compile(r"^[^'`/\\\n]+(?:`[^'`/\\\n]*`[^'`/\\\n]*)?$", re.MULTILINE)
"""Lines whose only texts stand in quotes, at most one of them in backticks: see `_tight`."""
_TEXT = re.compile(r"(\"[^\"]*\"|`[^`]*`)")
_STYLES = re.compile(r"css`[^`]*`")
_LOOSE = re.compile(r"(?<=[:,]) | (?=\{)")
"""Blanks in a style sheet that separate nothing."""
_EXPORTED = re.compile(r"^export (?:async )?(?:function|const|class) (\w+)", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(async )?function|const|class)", re.MULTILINE)


def module_names() -> list[str]:
    """The names of all explorers' modules, sorted.

    >>> "attention" in module_names()
    True
    """
    names = (Path(entry.name) for entry in (files("ttutor.widgets") / "js").iterdir())
    return sorted(name.stem for name in names if name.suffix == ".js" and name.stem not in {*_PARTS, "mount"})


def module_source(name: str) -> str:
    """One explorer as a single ES module: what all explorers share, then its own part."""
    return _shared() + _part(name)


def static_script(names: list[str] | None = None, apart: Collection[str] = ()) -> str:
    """A classic script that mounts the explorers of a page; all of them unless some are named.

    Those that are ``apart`` it loads from scripts of their own beside it; see `part_script`.
    """
    parts = {name: None if name in apart else _part(name) for name in (module_names() if names is None else names)}
    # The long parts stand together, so that what they share is near: gzip looks back 32 kB.
    longest_first = sorted(parts, key=lambda name: -len(parts[name] or ""))
    listed = ",".join(f"{name}:{_quoted(parts[name])}" for name in longest_first)
    exported = ",".join(found for part in _SHARED for found in _EXPORTED.findall(_read(part)))
    script = _read("mount").replace('/*SHARED*/ ""', _quoted(f"{_shared()}\nglobalThis.ttutorShared={{{exported}}};"))
    return script.replace("/*MODULES*/ {}", f"{{{listed}}}")


def part_script(name: str) -> str:
    """A classic script that carries one explorer's own part, for pages whose script has it apart."""
    return f"(globalThis.ttutorModules ||= {{}})[{json.dumps(name)}] = {_quoted(_part(name))};\n"


def write_script(out: Path) -> None:
    """Write the script of all explorers to a file, what it has apart beside it, and say how large it is."""
    script = static_script(apart=_APART).encode()
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(script)
    for name in _APART:
        (out.parent / f"explorer-{name}.js").write_text(part_script(name), encoding="utf-8")
    gzipped = len(gzip.compress(script, mtime=0))
    print(f"{out}: {', '.join(module_names())}; {len(script):,} bytes, {gzipped:,} gzipped")


def write_weights(folder: Path) -> Path:
    """Write the weights of the translator that ships, which `TranslatorExplorer` loads from beside the script."""
    from ttutor.translation.packed import DEFAULT, load_packed

    path = folder / f"{DEFAULT}.js"
    path.write_text(weights_script(DEFAULT, load_packed().to_bytes()), encoding="utf-8")
    return path


def weights_script(name: str, packed: bytes) -> str:
    """A classic script that carries a packed translator: pages that are opened from disk can load no other file."""
    return f'(globalThis.ttutorWeights ||= {{}})[{json.dumps(name)}] = "{base64.b64encode(packed).decode()}";\n'


def _read(name: str) -> str:
    written = (files("ttutor.widgets") / "js" / f"{name}.js").read_text(encoding="utf-8")
    return _UNREAD.sub("", written)


@cache
def _shared() -> str:
    """The shared parts as one, with the palette of ``style.py`` written in: the colours have one source."""
    colours = {"light": _properties(PALETTE, OUTLINES), "dark": _properties(PALETTE_DARK, OUTLINES_DARK)}
    together = "".join(_IMPORT.sub("", _read(name)) for name in _SHARED)
    return _packed(_EXPORT.sub("", together.replace("/*COLOURS*/ { light: {}, dark: {} }", _literal(colours))))


@cache
def _part(name: str) -> str:
    if name not in module_names():
        raise ValueError(f"no explorer {name!r}; there are {', '.join(module_names())}")
    own = [_EXPORT.sub("", _IMPORT.sub("", _read(part))) for part in _OWN.get(name, ())]
    return _packed("".join([*own, _IMPORT.sub("", _read(name))]))


def _packed(source: str) -> str:
    source = _PLAIN.sub(lambda line: _tight(line[0]), source)
    source = _IDLE.sub(r"\1\2\3\4", _UNMISSED.sub(r"\1", source))
    return _STYLES.sub(lambda style: _LOOSE.sub("", style[0]), source)


def _tight(line: str) -> str:
    """A line without the blanks that nothing needs outside its texts.

    >>> _tight('const a = { text: "b, c: d", e: `f: ${g}`, h: 2 };')
    'const a={ text:"b, c: d",e:`f: ${g}`,h:2 };'
    """
    pieces = _TEXT.split(line)
    pieces[::2] = [code.replace(", ", ",").replace(": ", ":").replace(" = ", "=") for code in pieces[::2]]
    return "".join(pieces)


def _properties(fills: dict[str, str], outlines: dict[str, str]) -> dict[str, str]:
    return {**fills, **{f"{name}-line": colour for name, colour in outlines.items()}}


def _quoted(text: str | None) -> str:
    """A text between single quotes, since ours are full of double ones, which need no backslash there."""
    if text is None:
        return "null"
    inner = _literal(text)[1:-1].replace('\\"', '"').replace("'", "\\'")
    return f"'{inner}'"


def _literal(value: object) -> str:
    """JSON that may stand in an HTML script element: a closing tag in it would end the element."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True).replace("</", "<\\/")
