"""The project's own files agree with one another."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import ttutor
from book._tools.build import read_toc
from release.changelog import entries
from ttutor.doctor import EXTRAS as EXTRAS_OF_DOCTOR

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = {name: entries for name, entries in PROJECT["optional-dependencies"].items() if name != "dev"}
DECLARED = [*PROJECT["dependencies"], *(entry for entries in EXTRAS.values() for entry in entries)]
PINNED = dict(
    line.split("==")
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").lower().splitlines()
    if line and not line.startswith("#")
)


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_what_the_code_needs_is_pinned_within_its_bounds() -> None:
    needed = [Requirement(entry) for entry in DECLARED if not entry.startswith("ttutor[")]
    assert [one.name for one in needed if PINNED[one.name.lower()] not in one.specifier] == []
    assert [name for name, version in PINNED.items() if not re.fullmatch(r"[0-9][0-9a-z.]*", version)] == []


def test_dev_is_all_extras_and_doctor_knows_them() -> None:
    assert PROJECT["optional-dependencies"]["dev"] == [f"ttutor[{','.join(EXTRAS)}]"]
    assert list(EXTRAS) == list(EXTRAS_OF_DOCTOR)


def test_conda_and_pip_install_from_one_list() -> None:
    *_, pip = yaml.safe_load(read("environment.yml"))["dependencies"]
    assert pip["pip"][1:] == ["-c constraints.txt", "-e .[dev]"]


def test_the_version_to_cite_is_the_packages_or_while_that_is_in_work_the_one_before() -> None:
    dated = next(entry.version for entry in entries(read("CHANGELOG.md")) if entry.date)
    assert yaml.safe_load(read("CITATION.cff"))["version"] == dated
    assert ttutor.__version__ == dated or "dev" in ttutor.__version__


def test_the_readme_names_only_commands_that_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", read("Makefile"), flags=re.MULTILINE))
    named = set(re.findall(r"`make (?:[A-Z_]+=\S+ )*([a-z]+)`", read("README.md") + read("CONTRIBUTING.md")))
    assert {"book", "test"} <= named <= targets


def test_the_table_of_contents_holds_every_page() -> None:
    pages = {f"book/{path.stem}" for path in (ROOT / "book").glob("*") if path.suffix in (".md", ".ipynb")}
    assert set(read_toc()) == pages


def test_the_reference_describes_every_module_of_the_package() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "book").glob("api-*.md"))
    described = set(re.findall(r"automodule:: (ttutor[\w.]*)", pages))
    package = ROOT / "ttutor"
    modules = {f"ttutor.{path.stem}" for path in package.glob("*.py") if path.stem != "__init__"}
    commands = {
        f"ttutor.{name}"
        for name in ("__main__", "cli", "command_group", "console", "doctor", "files", "schemas", "texts")
    }
    assert modules - described == commands, "commands, and what they read and write by, are described in the README"
    folders = {f"ttutor.{path.parent.name}" for path in package.glob("*/__init__.py")}
    assert folders - {".".join(name.split(".")[:2]) for name in described} == set()


def test_every_annotation_of_an_array_is_enforced(pytestconfig: pytest.Config) -> None:
    *enforced, _ = pytestconfig.getoption("jaxtyping_packages").split(",")
    annotated = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (ROOT / "ttutor").rglob("*.py")
        if re.search(r"^ *from jaxtyping import", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    modules = {name.removesuffix(".__init__") for name in annotated if not name.startswith("ttutor.exercises.")}
    assert {name for name in modules if not f"{name}.".startswith(tuple(f"{one}." for one in enforced))} == set()
    assert all(any(f"{name}.".startswith(f"{one}.") for name in modules) for one in enforced)


# They run a student's file, whose neighbours Python would find, too.
MAY_SET_THE_PATH = ("ttutor/exercises/loading.py", "ttutor/grading/", "tests/grading/")


def tracked(*patterns: str) -> list[str]:
    """The files of the repository, as paths from its root."""
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip(f"needs a checkout with git: {listed.stderr.strip()}")
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def test_no_file_changes_where_python_looks_for_modules() -> None:
    """The installed project is found from everywhere, its tools and tests included."""
    changes = re.compile(r"sys\.path(\.(insert|append|extend)|(\[[^\]]*\])? \+?= )|sys, \"path\"")
    files = [name for name in tracked("*.py", "*.ipynb") if not name.startswith(MAY_SET_THE_PATH)]
    assert [name for name in files if changes.search(read(name))] == []


def test_everything_at_the_top_level_is_explained() -> None:
    explanation = "".join(map(read, ("README.md", "CONTRIBUTING.md", "book/how-it-is-built.md")))
    names = {name.split("/")[0] for name in tracked()}
    assert {name for name in names if f"`{name}" not in explanation} == set(), (
        "say in book/how-it-is-built.md what they are for"
    )
