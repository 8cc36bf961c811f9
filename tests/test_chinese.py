"""Chinese pages say what the English ones say: the same commands, links and tables, looked at since the last change."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_spec = importlib.util.spec_from_file_location("stamp", ROOT / "docs" / "zh" / "stamp.py")
assert _spec
assert _spec.loader
stamp = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(stamp)

PAGES = stamp.pages()
OTHER = {"README.md", "README.zh.md"}
"""Each language links to the other."""


def read(page: Path) -> str:
    text: str = stamp.MARK.sub("\n", page.read_text("utf-8"))
    return text


def commands(text: str) -> list[str]:
    """The lines of code, without what is said of them."""
    return [line.split(" #")[0].strip() for line in text.splitlines() if line.startswith("    ")]


def shape(text: str) -> dict[str, int]:
    lines = text.splitlines()
    return {
        "headings": sum(line.startswith("#") for line in lines),
        "rows": sum(line.startswith("|") for line in lines),
        "steps": sum(line.startswith("1. ") for line in lines),
        "points": sum(line.startswith("- ") for line in lines),
    }


def targets(page: Path, text: str) -> list[str]:
    """What a page links to, from the root."""
    links = re.findall(r"\]\(([^)#]+)", text)
    found = {
        link if "://" in link else (page.parent / link).resolve().relative_to(ROOT).as_posix()
        for link in links
    }
    return sorted(found - OTHER - {"docs/zh/runbooks"})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_is_in_step(page: Path):
    english = stamp.original(page)
    chinese, text = read(page), read(english)

    assert page.read_text("utf-8").endswith(stamp.mark(page)), (
        f"{english.name} was changed: look at {page.name}, then python docs/zh/stamp.py"
    )
    assert commands(chinese) == commands(text)
    assert shape(chinese) == shape(text)
    assert targets(page, chinese) == targets(english, text)
    assert len(re.findall("[一-鿿]", chinese)) > 50


def test_every_runbook_is_there_in_chinese():
    english = {page.name for page in (ROOT / "docs" / "runbooks").glob("*.md")}

    assert english == {page.name for page in (ROOT / "docs" / "zh" / "runbooks").glob("*.md")}
    assert len(english) > 10
