"""Names of pods, processes, files and modes, what CANN says and what libraries raise: none of it writes a line of ours.

Line breaks of every kind, escapes of a terminal and quotes, in the log, on a terminal and in the metrics.
"""

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from capture_canary.cli import main
from capture_canary.export.exposition import Exposition
from capture_canary.logging import Format, configure_logging, get_logger
from capture_canary.probe import measure, runner
from capture_canary.probe.messages import Failed, Noted, Started, encode
from capture_canary.stack import helpers
from capture_canary.stack.command import Command
from tests.builders import make_report
from tests.export.showing import Daemon
from tests.export.test_pages import hostile

FORGED = "forged_event"
STEERS = "\x1b[2J\x1b]0;title\x07\x9b31m\x08\r"
BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
HOSTILE = (
    f"{STEERS}\"\\'}}{{#" + "".join(f"{one}{FORGED} 1" for one in BREAKS) + "\ud800\u202e\u200b\0"
)
WHOLE = HOSTILE.replace("\ud800", "")
"""No JSON has half a character."""
OWN_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def texts() -> st.SearchStrategy[str]:
    pieces = [
        *BREAKS,
        *STEERS,
        '"',
        "\\",
        "'",
        "}",
        "{",
        "=",
        " ",
        FORGED,
        "\ud800",
        "\u202e",
        "\0",
    ]
    return st.one_of(st.text(), st.lists(st.sampled_from(pieces)).map("".join), st.just(HOSTILE))


def logged(form: Format, monkeypatch: pytest.MonkeyPatch, text: str) -> str:
    """What is written of an event, and of an exception, that hold a text."""
    with monkeypatch.context() as patch:
        written = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace", newline="")
        patch.setattr(sys, "stderr", written)
        configure_logging(form)
        log = get_logger("x")
        log.warning("captures_slow_down", file=text, why=[text], reason=text)
        try:
            int(text + "x")  # quotes what it got, as errors do
        except ValueError:
            log.exception("step_failed", step=text)
        written.flush()
        return written.buffer.getvalue().decode()


@pytest.mark.parametrize("form", ["json", "console"])
def test_the_log_has_no_line_but_ours(form: Format):
    monkeypatch = pytest.MonkeyPatch()

    @given(texts())
    def holds(text: str) -> None:
        lines = OWN_COLOURS.sub("", logged(form, monkeypatch, text)).split("\n")
        assert lines.pop() == ""
        assert all(line.isprintable() for line in lines)
        ours = [line for line in lines if line and not line.startswith("  ")]
        assert len(ours) == 2, lines

    holds()


def test_json_lines_say_it_exactly(monkeypatch: pytest.MonkeyPatch):
    first, second = logged("json", monkeypatch, HOSTILE).splitlines()
    assert json.loads(first)["file"] == HOSTILE
    assert json.loads(second)["step"] == HOSTILE


def test_metrics_have_no_line_and_no_series_but_ours(tmp_path: Path):
    daemon = Daemon(tmp_path)
    try:
        wanted = counted(daemon)
        for text in (WHOLE, '"} 1\nforged_event{x="', "\\", '\\"', "a\\\nforged_event 1"):
            daemon.probed(hostile(make_report("degraded"), text))
            for accept in ("text/plain", "application/openmetrics-text;version=1.0.0"):
                page = Exposition(lambda: daemon.view).scrape(accept)[0].decode()
                assert page.splitlines() == page.removesuffix("\n").split("\n")
                assert all(line.isprintable() for line in page.splitlines())
                assert not re.search(rf"^{FORGED}", page, re.MULTILINE)
            assert {name for name in counted(daemon) if FORGED in name} == set()
            assert wanted <= counted(daemon)
    finally:
        daemon.store.close()


def counted(daemon: Daemon) -> set[str]:
    page = Exposition(lambda: daemon.view).scrape()[0].decode()
    return {sample.name for one in text_string_to_metric_families(page) for sample in one.samples}


SAYS = {
    "versions": encode(Started(rank=0, pid=1, device=0, soc=WHOLE, versions={WHOLE: WHOLE})),
    "failure": encode(Failed(rank=0, step=WHOLE, reason=WHOLE, code=7)),
    "note": encode(Noted(text=WHOLE)),
    "garbage": WHOLE.encode() + b"\n",
}


@pytest.mark.parametrize("what", [*SAYS, "standard error"])
def test_what_a_child_says_steers_no_terminal(what: str, monkeypatch: pytest.MonkeyPatch):
    script = (
        "import os, sys; sys.stdin.readline(); "
        f"os.write(int(sys.argv[1]), {SAYS.get(what, b'')!r}); "
        f"os.write(2, {WHOLE.encode() if what == 'standard error' else b''!r})"
    )
    real, hearing = runner.run_arm, (sys.executable, "-c", script)

    def scripted(*args: Any, **options: Any) -> runner.ArmRun:
        return real(*args, **{**options, "command": hearing})

    monkeypatch.setattr(measure, "run_arm", scripted)
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    assert main(["probe", "--emulate", "cann=8.5.0,soc=a3"]) == 3
    shown = out.getvalue() + err.getvalue()
    assert "UNKNOWN" in shown
    assert {c for c in shown if not c.isprintable()} == {"\n"}
    assert f"\n{FORGED}" not in shown


def test_what_a_helper_quotes_is_shown_short_and_on_one_line(monkeypatch: pytest.MonkeyPatch):
    """The Docker Engine's own words, for one, in the answer of the child that asked it."""
    answer = msgspec.json.encode(helpers.Answer(error=WHOLE * 100))
    monkeypatch.setattr(Command, "run", lambda _self: (0, answer))
    error = helpers._ask("docker_child", []).error  # noqa: SLF001  # what both sockets and the API go through
    assert error is not None
    assert error.isprintable()
    assert len(error) <= 200
