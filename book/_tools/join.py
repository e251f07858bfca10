"""One PDF from what was printed piece by piece: pages, structure, outline, links and numbers under one roof."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pikepdf
from book._tools.leaf import SCHEME
from book._tools.whole_book import END, NAME, Heading
from pikepdf import Array, Dictionary, Name, OutlineItem, Pdf, String

DIGIT = 0.556
"""The width of a digit of Helvetica, as a part of its size."""


@dataclass
class Joined:
    """A PDF that grows by one printed chunk after the other; `finish` makes it whole.

    Attributes:
        document: the PDF so far.
        places: by anchor, the number of the sheet from 0, and the place on it.
        headings: all headings so far.
    """

    document: Pdf = field(default_factory=Pdf.new)
    places: dict[str, tuple[int, Array]] = field(default_factory=dict)
    headings: list[Heading] = field(default_factory=list)
    _structure: list[pikepdf.Object] = field(default_factory=list)
    _parents: list[tuple[int, pikepdf.Object]] = field(default_factory=list)
    _named: list[tuple[str, pikepdf.Object]] = field(default_factory=list)
    _next_parent: int = 0
    _contents: list[int] = field(default_factory=list)

    def add(self, printed: bytes, headings: list[Heading]) -> int:
        """Put what was printed of one chunk behind the rest; return how many sheets it has.

        Raises:
            ValueError: its end is not marked, so it was not printed whole.
        """
        with pikepdf.open(io.BytesIO(printed)) as source:
            first = len(self.document.pages)
            numbers = {page.obj.objgen: at for at, page in enumerate(source.pages)}
            places = {key.lstrip("/"): value for key, value in source.Root.get("/Dests", Dictionary()).items()}
            if END not in places:
                raise ValueError(f"the end of the printed chunk {headings[:1]} is missing: print it again")
            n_sheets = numbers[places[END][0].objgen]
            for anchor, place in places.items():
                if numbers[place[0].objgen] < n_sheets:
                    self.places[anchor] = first + numbers[place[0].objgen], Array(list(place)[1:])
            del source.pages[n_sheets:]
            self._shift(source, f"{first}-")
            self.document.pages.extend(source.pages)
            self._take_structure(source)
        self.headings += headings
        return n_sheets

    def _shift(self, source: Pdf, prefix: str) -> None:
        """Give a chunk numbers and names in the structure that no other has."""
        for entry in source.objects:
            if not isinstance(entry, Dictionary):
                continue
            if entry.get("/Type") == "/StructElem":
                _rename(entry, prefix)
            for key in ("/StructParents", "/StructParent"):
                if key in entry:
                    entry[key] = int(entry[key]) + self._next_parent

    def _take_structure(self, source: Pdf) -> None:
        """Take over the chunk's part of what is read aloud, and in which order."""
        root = source.Root.get("/StructTreeRoot")
        if root is None:
            return
        taken = self.document.copy_foreign(source.make_indirect(root))
        kids = taken.K if isinstance(taken.K, Array) else [taken.K]
        self._structure += list(kids)
        entries = list(pikepdf.NumberTree(taken.ParentTree).items())
        self._parents += [(number + self._next_parent, entry) for number, entry in entries]
        if "/IDTree" in taken:
            self._named += [(str(entry.ID), entry) for _, entry in pikepdf.NameTree(taken.IDTree).items()]
        self._next_parent += 1 + max((number for number, _ in entries), default=-1)

    def finish(self, target: Path, author: str) -> int:
        """Lead the links, write numbers and outline, and the file in its smallest form; return its sheets."""
        document = self.document
        self._finish_structure()
        self._lead()
        self._number()
        self._outline()
        with document.open_metadata() as metadata:
            metadata["dc:title"] = NAME
            metadata["dc:creator"] = [author]
            metadata["dc:language"] = ["en"]
        document.docinfo["/Title"], document.docinfo["/Author"] = NAME, author
        document.Root.Lang = String("en")
        document.Root.ViewerPreferences = Dictionary(DisplayDocTitle=True)
        document.Root.PageMode = Name.UseOutlines
        pikepdf.settings.set_flate_compression_level(9)
        with half_written(target) as part:
            document.save(
                part,
                object_stream_mode=pikepdf.ObjectStreamMode.generate,
                compress_streams=True,
                recompress_flate=True,
                deterministic_id=True,
            )
        return len(document.pages)

    def _finish_structure(self) -> None:
        document = self.document
        parents = pikepdf.NumberTree.new(document)
        for number, entry in self._parents:
            parents[number] = entry
        names = pikepdf.NameTree.new(document)
        for name, entry in self._named:
            names[name] = entry
        whole = document.make_indirect(Dictionary(Type=Name.StructElem, S=Name.Document, K=Array(self._structure)))
        root = document.make_indirect(
            Dictionary(
                Type=Name.StructTreeRoot,
                K=whole,
                RoleMap=Dictionary(Em=Name.Span, Strong=Name.Span),
                ParentTree=parents.obj,
                ParentTreeNextKey=self._next_parent,
                IDTree=names.obj,
            )
        )
        for entry in self._structure:
            entry.P, entry.S = whole, Name.Part
        whole.P = root
        document.Root.StructTreeRoot = root
        document.Root.MarkInfo = Dictionary(Marked=True)

    def _lead(self) -> None:
        """Turn the addresses of places in the book into places in the PDF."""
        for at, page in enumerate(self.document.pages):
            for link in page.obj.get("/Annots", []):
                address = str(link.get("/A", {}).get("/URI", ""))
                if address.startswith(SCHEME):
                    number, place = self.places[address.removeprefix(SCHEME)]
                    del link["/A"]
                    link.Dest = Array([self.document.pages[number].obj, *place])
                    if at < self.places_begin():
                        self._contents.append(at)

    def places_begin(self) -> int:
        """The sheet on which the text begins, behind title and contents."""
        return self.places["p1"][0]

    def _number(self) -> None:
        """Write the number of each sheet at its foot, and in the contents that of the sheet each line leads to."""
        numbers = {page.obj.objgen: at for at, page in enumerate(self.document.pages, start=1)}
        for at, page in enumerate(self.document.pages, start=1):
            width = float(page.mediabox[2])
            shown = [] if at == 1 else [(at, (width + DIGIT * 8 * len(str(at))) / 2, 26.0, 8)]
            if at - 1 in self._contents:
                shown += [(numbers[number], x, y, 9) for number, x, y in _lines(page)]
            _write_numbers(page, shown)

    def _outline(self) -> None:
        """Write all headings as an outline, each under the one above it."""
        with self.document.open_outline() as outline:
            above: list[tuple[int, list[OutlineItem]]] = [(0, outline.root)]
            for heading in self.headings:
                while above[-1][0] >= heading.level:
                    above.pop()
                number, place = self.places[heading.anchor]
                item = OutlineItem(heading.title, Array([self.document.pages[number].obj, *place]))
                item.is_closed = heading.level > 1
                above[-1][1].append(item)
                above.append((heading.level, item.children))


def _rename(entry: Dictionary, prefix: str) -> None:
    """Put a prefix before an element's name in the structure, and before the names of headings it refers to."""
    if "/ID" in entry:
        entry.ID = String(prefix + str(entry.ID))
    attributes = entry.get("/A", [])
    for attribute in attributes if isinstance(attributes, Array) else [attributes]:
        if isinstance(attribute, Dictionary) and "/Headers" in attribute:
            attribute.Headers = Array([String(prefix + str(name)) for name in attribute.Headers])


def _lines(page: pikepdf.Page) -> Iterator[tuple[tuple[int, int], float, float]]:
    """Yield for each link of a sheet of the contents where it leads, and where its number belongs."""
    for link in page.obj.get("/Annots", []):
        if "/Dest" in link:
            _, bottom, right, top = map(float, link.Rect)
            yield link.Dest[0].objgen, right, bottom + (top - bottom) * 0.28


def _write_numbers(page: pikepdf.Page, numbers: list[tuple[int, float, float, int]]) -> None:
    """Write numbers so that they end at the given places, in the given sizes, outside of what is read aloud."""
    if not numbers:
        return
    font = Dictionary(Type=Name.Font, Subtype=Name.Type1, BaseFont=Name.Helvetica)
    name = page.add_resource(font, Name.Font)
    shown = [
        f"BT {name} {size} Tf {right - DIGIT * size * len(str(number)):.2f} {y:.2f} Td ({number}) Tj ET"
        for number, right, y, size in numbers
    ]
    page.contents_add(b"q", prepend=True)
    page.contents_add(f"Q /Artifact BMC {' '.join(shown)} EMC".encode())
    page.contents_coalesce()


@contextmanager
def half_written(target: Path) -> Iterator[Path]:
    """Yield a place to write to, which takes the target's place at the end, or vanishes if the end is not reached."""
    part = target.with_suffix(".part")
    try:
        yield part
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
