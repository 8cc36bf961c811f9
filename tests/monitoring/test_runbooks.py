"""Every alert has a runbook of the usual shape, which names only commands that exist."""

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest
from monitoring.alerts import ALERTS

from capture_canary.cli import COMMANDS, main

DOCS = Path(__file__).parents[2] / "docs"
RUNBOOKS = DOCS / "runbooks"
NAMES = [alert.name for alert in ALERTS]
OTHERS = {"kubectl", "npu-smi", "rm", "systemctl"}
"""Commands of others that a node or an operator has."""
PROMQL = re.compile(r"^(topk|sum|up|instance:|workload:|capture_canary_)")


def commands(page: str) -> list[list[str]]:
    """The commands in its blocks."""
    lines = re.findall(r"^    (\S.*)$", page, re.MULTILINE)
    return [shlex.split(line) for line in lines if not PROMQL.match(line)]


def test_there_is_one_for_each_alert_and_no_other():
    assert set(NAMES) == {path.stem for path in RUNBOOKS.glob("*.md")}


@pytest.mark.parametrize("name", NAMES)
def test_it_has_the_usual_shape(name: str):
    page = (RUNBOOKS / f"{name}.md").read_text()
    assert re.findall(r"^#+ .*$", page, re.MULTILINE) == [
        f"# {name}",
        "## Meaning",
        "## Impact",
        "## Diagnosis",
        "## Mitigation",
    ]
    assert all(len(line) <= 120 for line in page.splitlines())


@pytest.mark.parametrize("name", NAMES)
def test_its_commands_exist(name: str):
    page = (RUNBOOKS / f"{name}.md").read_text()
    inline = re.findall(r"`(capture-canary [^`]+)`", page)
    for command in [*commands(page), *map(shlex.split, inline)]:
        if command[0] != "capture-canary":
            assert command[0] in OTHERS, command
            continue
        assert command[1] in COMMANDS, command
        options = [word for word in command if word.startswith("--")]
        actions = [word for word in command[2:3] if word.isalpha()]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), pytest.raises(SystemExit) as ended:
            main([command[1], *actions, "--help"])
        assert not ended.value.code, command
        assert all(option in printed.getvalue() for option in options), command


@pytest.mark.parametrize("name", NAMES)
def test_its_links_lead_somewhere(name: str):
    page = (RUNBOOKS / f"{name}.md").read_text()
    for link in re.findall(r"\]\(([^)]+)\)", page):
        assert (RUNBOOKS / link).exists(), link
    for metric in re.findall(r"\b(capture_canary_\w+)", page):
        known = (DOCS / "metrics.md").read_text() + (
            DOCS.parent / "rules/capture-canary.yml"
        ).read_text()
        assert metric in known, metric
    for mentioned in re.findall(r"\bCaptureCanary\w+", page):
        assert mentioned in NAMES, mentioned
