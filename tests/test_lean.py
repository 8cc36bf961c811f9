"""What the daemon keeps in memory for months: nothing that it does not use."""

import subprocess
import sys

import pytest

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
