"""Starts capture-canary from the folder that the injector copied, beside whatever packages the server has."""

import os
import sys
from pathlib import Path

LIB = str(Path(__file__).resolve().parents[1] / "lib")
"""The package and msgspec: all that a rank needs, which a probe starts with the server's own Python."""

sys.path.insert(0, LIB)
if sys.argv[1:2] != [
    "exec"
]:  # a traced server is to find nothing that it would not find without us
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{before}:{LIB}" if before else LIB

from capture_canary.cli import main  # noqa: E402  # only now it can be found

sys.exit(main())
