"""The page for those who come from PyTorch or transformers: its code runs, and its tables are the package's."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest
import torch

from ttutor import names, other_names

PAGE = (Path(__file__).resolve().parents[2] / "book" / "coming-from.md").read_text(encoding="utf-8")
CODE = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
TABLES = {
    "Modules of the package": other_names.ROOMS,
    "Layers": other_names.LAYERS,
    "Sizes and options": other_names.SIZES,
    "Arguments of a call": other_names.CALLS,
    "Writing text": other_names.GENERATION,
    "Training": other_names.TRAINING,
    "Whole models, weights and tools": other_names.MODELS,
    "Parts of a model": other_names.PARTS,
    "Commands": other_names.COMMANDS,
    "Options of commands": other_names.OPTIONS,
}


@pytest.mark.parametrize("number", range(len(CODE)))
@pytest.mark.usefixtures("as_readers_run_it")
def test_the_code_runs_as_it_stands_and_alone(number: int) -> None:
    torch.manual_seed(0)
    test = doctest.DocTestParser().get_doctest(CODE[number], {}, "coming-from", "coming-from", 0)
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
    assert result.attempted
    assert result.failed == 0


@pytest.mark.parametrize("heading", TABLES)
def test_a_table_is_the_one_of_the_package(heading: str) -> None:
    section = PAGE.partition(f"### {heading}\n")[2].partition("\n#")[0]
    assert re.findall(r"^\| `([\w-]+)` \| (.*) \|$", section, re.M) == list(TABLES[heading].items())


def test_the_tables_are_all_of_it() -> None:
    of_the_command = len(other_names.COMMANDS) + len(other_names.OPTIONS)
    assert sum(len(table) for table in TABLES.values()) == len(names.OURS) + of_the_command
