"""Small notebooks for the tests of the book's tools."""

from __future__ import annotations

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output


def code(source: str, name: str, *tags: str, **ttutor: str) -> NotebookNode:
    """A code cell that has been run and printed something."""
    cell = new_code_cell(source, execution_count=1, outputs=[new_output("stream", text="printed\n")])
    return named(cell, name, tags, ttutor)


def text(source: str, name: str, *tags: str, **ttutor: str) -> NotebookNode:
    """A Markdown cell."""
    return named(new_markdown_cell(source), name, tags, ttutor)


def named(cell: NotebookNode, name: str, tags: tuple[str, ...], ttutor: dict[str, str]) -> NotebookNode:
    """The cell with its id, its tags and its part in an exercise."""
    cell.id = name
    cell.metadata = NotebookNode({"tags": list(tags)} if tags else {})
    if ttutor:
        cell.metadata["ttutor"] = NotebookNode(ttutor)
    return cell


def notebook(*cells: NotebookNode) -> NotebookNode:
    """A notebook of these cells."""
    return new_notebook(cells=list(cells))
