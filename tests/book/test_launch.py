"""Where a chapter runs: the line that says so, its links to Binder and Colab, and what it does when it is in Colab."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from nbformat import NotebookNode

import ttutor
from book._tools import launch
from book._tools.address import tag, written_address
from book._tools.colab import GUARD, guarded_line, with_guarded_line
from book._tools.editions import edition
from book._tools.notebook_io import ROOT, chapters, code_cells, notebooks, read

OPENING = re.compile(
    r"\*\*Runs on:\*\* one CPU core, in (?:under a minute|about a minute|about two minutes), "
    r"with no graphics card and no download\. "
    r"\*\*Time:\*\* (?:\d+ minutes to read(?:, )?)?(?:[a-z ]*hours? (?:or more )?for all exercises)?\."
)
REPOSITORY = "https://github.com/someone/course"


def stored(path: Path) -> NotebookNode:
    return read(path.read_text(encoding="utf-8"))


class Shell:
    """What a notebook has in Colab, or elsewhere: it tells its name, and remembers what it was to run."""

    def __init__(self, name: str) -> None:
        self.name, self.commands = name, []

    def __repr__(self) -> str:
        return f"<{self.name} object at 0x7f2a>"

    def system(self, command: str) -> None:
        self.commands.append(command)


def run_guarded(source: str, shell: Shell) -> str:
    """Run what stands before the imports of a first cell; return what it printed."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(source.split("\n\n")[0], {"get_ipython": lambda: shell})
    return printed.getvalue()


def first_code(notebook: NotebookNode) -> NotebookNode:
    return next(code_cells(notebook))


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_a_chapter_opens_with_where_it_runs_and_how_long(path: Path) -> None:
    title = stored(path).cells[0].source
    opening = title.split("\n\n", maxsplit=2)[1].splitlines()
    assert opening[:2] == ["```{admonition} In this chapter", ":class: tip"]
    assert OPENING.fullmatch(title.split("\n\n", maxsplit=3)[2])
    assert title.count("**Runs on:**") == title.count("**Time:**") == 1


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_a_notebook_begins_with_a_line_that_installs_the_package_in_colab_and_only_there(path: Path) -> None:
    first = first_code(stored(path))
    assert first.source.startswith(guarded_line(ttutor.__version__, written_address()))
    assert (first.source.count(GUARD), first.outputs) == (1, [])
    elsewhere, colab = Shell("ipykernel.zmqshell.ZMQInteractiveShell"), Shell("google.colab._shell.Shell")
    assert (run_guarded(first.source, elsewhere), elsewhere.commands) == ("", [])
    run_guarded(first.source, colab)
    wanted = {f"=={ttutor.__version__}", f" @ git+{written_address()}@{tag(ttutor.__version__)}"}
    assert colab.commands[0] in {f"pip install -q 'ttutor[chapters]{which}'" for which in wanted}


@pytest.mark.parametrize(
    ("version", "repository", "expected"),
    [
        ("0.3.1", None, "ttutor[chapters]==0.3.1"),
        ("0.3.1", REPOSITORY, f"ttutor[chapters] @ git+{REPOSITORY}@v0.3.1"),
        ("0.4.0.dev0", REPOSITORY, f"ttutor[chapters] @ git+{REPOSITORY}@main"),
    ],
)
def test_the_line_follows_version_and_address(version: str, repository: str | None, expected: str) -> None:
    shell = Shell("google.colab._shell.Shell")
    run_guarded(guarded_line(version, repository), shell)
    assert shell.commands == [f"pip install -q '{expected}'"]


def test_a_new_version_takes_the_place_of_the_old_line(monkeypatch: pytest.MonkeyPatch) -> None:
    before = stored(chapters()[0])
    monkeypatch.setattr(ttutor, "__version__", "9.8.7")
    after = with_guarded_line(before)
    assert "ttutor[chapters]==9.8.7'" in after.cells[1].source or "@v9.8.7'" in after.cells[1].source
    monkeypatch.undo()
    assert with_guarded_line(after) == before


@pytest.mark.parametrize("repository", [None, REPOSITORY])
def test_the_theme_leads_to_repository_binder_and_colab_where_there_is_an_address(
    monkeypatch: pytest.MonkeyPatch, repository: str | None
) -> None:
    monkeypatch.setattr(launch, "address", lambda: repository)
    config = SimpleNamespace(html_theme_options={})
    launch.set_address(None, config)
    assert config.html_theme_options.get("repository_url") == repository
    buttons = config.html_theme_options.get("launch_buttons", {})
    assert ({"binderhub_url", "colab_url"} <= set(buttons)) is (repository is not None)


def test_the_buttons_open_what_make_lab_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "revision", lambda: "main")
    binder = "https://mybinder.org/v2/gh/someone/course/main?urlpath=lab/tree/book/02-attention.ipynb"
    colab = "https://colab.research.google.com/github/someone/course/blob/main/book/02-attention.ipynb"
    edit = f"{REPOSITORY}/edit/main/book/02-attention.ipynb"
    context = {"header_buttons": [{"buttons": [{"url": url} for url in (binder, colab, edit)]}, {"label": "search"}]}
    launch.lead_to_editions(None, "book/02-attention", "page.html", context, None)
    assert [button["url"] for button in context["header_buttons"][0]["buttons"]] == [
        binder.replace("/book/", "/my-course/"),
        colab.replace("main/book", "notebooks"),
        edit,
    ]
    assert "book._tools.lab my-course" in (ROOT / "postBuild").read_text(encoding="utf-8")


@pytest.mark.browser
@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_what_a_page_offers_for_download_is_what_make_lab_opens(path: Path, html: Path) -> None:
    offered = read((html / "_sources" / "book" / path.name).read_text(encoding="utf-8"))
    pages = frozenset(page.name for page in notebooks())
    assert offered == edition(stored(path), "student", path.name, pages)
