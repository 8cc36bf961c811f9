"""The schema of `probe --json`: committed, the model's own, and met by what a probe prints. `make docs` writes it."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
from docs.generate import report_schema

SCHEMA = Path(__file__).parent.parent / "docs" / "probe.schema.json"


def test_committed_schema_is_the_models():
    assert SCHEMA.read_text() == report_schema()


def test_printed_report_meets_it():
    command = [sys.executable, "-m", "capture_canary.cli", "probe", "--json", "--emulate"]

    ran = subprocess.run(
        [*command, "cann=8.5.0,soc=a3"], capture_output=True, check=False, timeout=120
    )

    assert 1 == ran.returncode
    jsonschema.validate(json.loads(ran.stdout), json.loads(SCHEMA.read_text()))
