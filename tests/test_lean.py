"""What the daemon keeps in memory for months: nothing that it does not use."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import capture_canary

UNUSED = (
    "rich",
    "plotext",
    "matplotlib",
    "bcrypt",
    "apscheduler",
    "csv",
    "zipfile",
    "torch",
    "numpy",
    "pydoc",
)


@pytest.mark.parametrize("command", ["run"])
def test_the_daemon_loads_nothing_that_it_does_not_use(command):
    script = f"import sys, capture_canary.commands.{command}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert set(UNUSED) & set(done.stdout.split()) == set()


def test_rich_is_there_again_for_those_who_want_it():
    script = "import capture_canary.logging, rich.console; print(rich.console.Console)"
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_structlog_is_loaded_where_rich_is_hidden_from_it():
    folder = Path(capture_canary.__file__).parent
    importing = re.compile(r"^\s*(import|from) structlog", re.MULTILINE)
    found = [file.name for file in folder.rglob("*.py") if importing.search(file.read_text())]
    assert found == ["logging.py"]
