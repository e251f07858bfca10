"""The project's own files agree with one another."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import ttutor
from book._tools.build import read_toc
from release.changelog import entries
from ttutor.doctor import EXTRAS as EXTRAS_OF_DOCTOR
from ttutor.doctor import meets, parse_requirement

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = {name: entries for name, entries in PROJECT["optional-dependencies"].items() if name != "dev"}
DECLARED = [*PROJECT["dependencies"], *(entry for entries in EXTRAS.values() for entry in entries)]
OTHERS = [entry for entry in DECLARED if not entry.startswith("ttutor[")]
PINNED = dict(
    line.split("==")
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").lower().splitlines()
    if line and not line.startswith("#")
)


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("requirement", OTHERS)
def test_what_the_code_needs_is_pinned_within_its_bounds(requirement: str) -> None:
    name, bounds, _ = parse_requirement(requirement)
    assert meets(PINNED[name.lower()], bounds)


def test_pins_are_plain_versions() -> None:
    assert [name for name, version in PINNED.items() if not re.fullmatch(r"[0-9][0-9a-z.]*", version)] == []


def test_the_core_needs_four_packages() -> None:
    assert [parse_requirement(entry)[0] for entry in PROJECT["dependencies"]] == [
        "torch",
        "numpy",
        "einops",
        "jaxtyping",
    ]


def test_doctor_knows_every_extra() -> None:
    assert list(EXTRAS) == list(EXTRAS_OF_DOCTOR)


def test_dev_is_all_extras() -> None:
    assert PROJECT["optional-dependencies"]["dev"] == [f"ttutor[{','.join(EXTRAS)}]"]


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


def test_every_make_target_says_what_it_does() -> None:
    targets = re.findall(r"^([a-z]+):.*$", read("Makefile"), flags=re.MULTILINE)
    explained = re.findall(r"^([a-z]+):.*## .+$", read("Makefile"), flags=re.MULTILINE)
    assert targets == explained


def test_the_table_of_contents_holds_every_page() -> None:
    pages = {f"book/{path.stem}" for path in (ROOT / "book").glob("*") if path.suffix in (".md", ".ipynb")}
    assert set(read_toc()) == pages


def test_the_reference_describes_every_module_of_the_package() -> None:
    described = set(re.findall(r"automodule:: (ttutor[\w.]*)", read("book/api.md")))
    package = ROOT / "ttutor"
    modules = {f"ttutor.{path.stem}" for path in package.glob("*.py") if path.stem != "__init__"}
    assert modules - described == {"ttutor.__main__", "ttutor.cli", "ttutor.doctor"}, (
        "commands are described in the README instead"
    )
    folders = {f"ttutor.{path.parent.name}" for path in package.glob("*/__init__.py")}
    assert folders - {".".join(name.split(".")[:2]) for name in described} == set()


def test_only_the_check_script_knows_where_data_lies() -> None:
    places = [path for path in [*ROOT.rglob("*.py"), ROOT / "Makefile"] if ".venv" not in path.parts]
    assert [str(path) for path in places if "shared/" + "data" in path.read_text(encoding="utf-8")] == []
