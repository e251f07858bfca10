"""What stands under every page: only facts, and no link that leads nowhere."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from book._tools import page_facts
from book._tools.page_facts import commit, facts

AUTHOR = ("-c", "user.name=A", "-c", "user.email=a@example.org")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with one commit."""
    (tmp_path / "page.md").write_text("# A page\n")
    for words in (("init", "-q"), ("add", "page.md"), (*AUTHOR, "commit", "-q", "--no-gpg-sign", "-m", "First")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    commit.cache_clear()
    return tmp_path


def test_a_clean_tree_has_its_commit_and_a_changed_one_is_marked(tree: Path) -> None:
    head, changed = commit(tree)
    assert (len(head), changed) == (40, False)
    (tree / "new.md").write_text("not known to git")
    commit.cache_clear()
    assert commit(tree) == (head, False)
    (tree / "page.md").write_text("# Another\n")
    commit.cache_clear()
    assert commit(tree) == (head, True)


def test_a_folder_inside_another_repository_has_no_commit(tree: Path) -> None:
    (tree / "unpacked").mkdir()
    assert commit(tree / "unpacked") is None


@pytest.mark.parametrize("address", [None, "https://github.com/a/b"])
def test_links_stand_only_where_a_repository_is_known(
    tree: Path, monkeypatch: pytest.MonkeyPatch, address: str | None
) -> None:
    monkeypatch.setattr(page_facts, "address", lambda: address)
    app = SimpleNamespace(srcdir=str(tree), env=SimpleNamespace(doc2path=lambda name: str(tree / f"{name}.md")))
    shown = facts(app, "page", "A page")
    assert len(shown["commit"]) == 9
    assert ("report" in shown, "source" in shown, "commit_link" in shown) == (address is not None,) * 3
    if address is not None:
        assert shown["source"].endswith("/page.md")
        assert all(shown[name].startswith(address) for name in ("report", "source", "commit_link"))
