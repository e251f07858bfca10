"""The book's two typefaces, cut down to what it writes and put into one style sheet.

Source Serif for reading and Source Sans for headings, tables and controls, by Adobe, under the SIL Open Font Licence;
they come from packages of the Python index. The licence reserves their name for the whole fonts: cut down, they are
called ttutor Serif and ttutor Sans. As the style sheet holds them, the text has its typeface when it first appears,
from a disk as from a server, and nothing moves afterwards.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import io
from dataclasses import dataclass
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

# Latin, Greek, punctuation, superscripts, arrows and the signs of mathematics; what is missing comes from the system.
CHARACTERS = [
    *range(0x20, 0x7F),
    *range(0xA0, 0x180),
    *range(0x370, 0x400),
    *range(0x2010, 0x2040),
    *range(0x2070, 0x20A0),
    *range(0x2190, 0x2300),
]
FEATURES = ["kern", "liga", "tnum", "lnum", "mark", "mkmk", "ccmp", "locl"]


@dataclass(frozen=True, kw_only=True)
class Face:
    """One font file of a package, and the name, weight and slope it has in the book."""

    package: str
    file: str
    family: str
    weight: int
    slope: str = "normal"


FACES = (
    Face(package="font-source-serif-pro", file="SourceSerifPro-Regular.ttf", family="ttutor Serif", weight=400),
    Face(
        package="font-source-serif-pro", file="SourceSerifPro-It.ttf", family="ttutor Serif", weight=400, slope="italic"
    ),
    Face(package="font-source-serif-pro", file="SourceSerifPro-Semibold.ttf", family="ttutor Serif", weight=600),
    Face(package="font-source-sans-pro", file="SourceSansPro-Regular.ttf", family="ttutor Sans", weight=400),
    Face(package="font-source-sans-pro", file="SourceSansPro-Semibold.ttf", family="ttutor Sans", weight=600),
)


def find(package: str, name: str) -> Path:
    """Return where a file of an installed package lies.

    Raises:
        FileNotFoundError: the package is not installed, or has no such file.
    """
    try:
        entries = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        entries = []
    for entry in entries:
        if entry.name == name:
            return Path(entry.locate())
    raise FileNotFoundError(f"no {name} in {package}: pip install -c constraints.txt -e .[book]")


def cut(face: Face) -> bytes:
    """A face with the book's characters alone and under its name in the book, as WOFF."""
    options = subset.Options(layout_features=FEATURES, hinting=False, flavor="woff")
    options.recalc_timestamp = False
    out = io.BytesIO()
    with subset.load_font(find(face.package, face.file), options) as font:
        cutter = subset.Subsetter(options)
        cutter.populate(unicodes=CHARACTERS)
        cutter.subset(font)
        rename(font, face.family)
        subset.save_font(font, out, options)
    return out.getvalue()


def rename(font: TTFont, family: str) -> None:
    """Take the reserved name off a font; its copyright and licence stay."""
    for record in font["name"].names:
        if record.nameID in (1, 3, 4, 6, 16, 18, 21):
            record.string = family.replace(" ", "") if record.nameID == 6 else family


def rule(face: Face) -> str:
    """The rule of a style sheet that holds a face.

    It comes with the page. Where it is not unpacked within a tenth of a second, the page stays in the reader's own
    typeface, since lines that are broken anew while they are read are worse.
    """
    data = base64.b64encode(cut(face)).decode("ascii")
    return (
        f'@font-face{{font-family:"{face.family}";font-weight:{face.weight};font-style:{face.slope};'
        f'font-display:optional;src:url(data:font/woff;base64,{data}) format("woff")}}\n'
    )


def write(target: Path, licence: Path) -> None:
    """Write the style sheet and the licences, unless they are there, made from the same fonts and by this code."""
    made_from = [Path(__file__), *(find(face.package, face.file) for face in FACES)]
    mark = f"/* {hashlib.sha256(b''.join(path.read_bytes() for path in made_from)).hexdigest()[:16]} */\n"
    if target.exists() and licence.exists() and target.read_text(encoding="utf-8").startswith(mark):
        return
    packages = dict.fromkeys(face.package for face in FACES)
    licence.write_bytes(b"\n".join(find(package, "LICENSE.txt").read_bytes() for package in packages))
    target.write_text(mark + "".join(rule(face) for face in FACES), encoding="utf-8")
