"""The table of faults, the tests that inject them, and the page that lists them are one."""

import importlib
from pathlib import Path

from docs import generate

from tests.faults import table

HERE = Path(__file__).parent


def injected() -> list[str]:
    """Return the faults that tests inject, one for each time."""
    found: list[str] = []
    for file in HERE.glob("test_*.py"):
        module = importlib.import_module(f"tests.faults.{file.stem}")
        for value in vars(module).values():
            if callable(value):
                found += getattr(value, "injects", ())
    return found


def test_each_fault_is_injected_by_one_test():
    listed = [one.name for faults in table.AREAS.values() for one in faults]
    assert sorted(listed) == sorted(injected())
    assert len(set(listed)) == len(listed) >= 40


def test_the_page_is_the_table():
    text = (generate.DOCS / "reliability.md").read_text()
    assert table.page().strip() in text
