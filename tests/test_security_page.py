"""SECURITY.md names modules that bound and tests that try: all of them are there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_what_the_page_names_is_there():
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    named = {
        name
        for name in re.findall(r"`([\w./-]+)`", text)
        if name.startswith(("tests/", "daemon/", "images/"))
    }

    assert len(named) > 25
    assert {name for name in named if not (ROOT / name).exists()} == set()
