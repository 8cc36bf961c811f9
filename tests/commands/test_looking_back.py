"""`history`, `report` and `story`, as a person or a script calls them."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.builders import make_report, make_stack

from capture_canary import cli
from capture_canary.commands import past
from capture_canary.exits import USAGE
from capture_canary.store import Store, schema

COMMANDS = ("history", "report", "story")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    now = time.time()
    store = Store(tmp_path / "state")
    store.add_event("start", at=now - 86400 * 20)
    store.note_stacks({"a": make_stack()}, at=now - 86400 * 20)
    store.add_probe(make_report("healthy"), at=now - 86400 * 20, stack="a")
    store.add_probe(make_report("degraded"), at=now - 7200, stack="a")
    store.add_skip("busy", at=now - 3600, detail="pid 7 \x1b[31mholds NPU 0")
    store.close()
    return tmp_path / "state"


def test_the_table_shows_newest_first(state: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["history", "--state-dir", str(state)]) == 0
    out = capsys.readouterr().out
    assert "EMULATED" in out
    assert out.index("skip") < out.index("degraded") < out.index("healthy") < out.index("start")
    assert "+256" in out
    assert "\x1b[31m" not in out, "what others wrote does not steer the terminal"


def test_json_lines(state: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["history", "--state-dir", str(state), "--json", "--since", "7d"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["kind"] for row in rows] == ["skip", "probe", "change", "stacks"]
    assert rows[1]["copies"] == 256
    assert rows[0]["reason"] == "busy"


def test_limit(state: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["history", "--state-dir", str(state), "--json", "--limit", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_the_report_is_written(state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "out.html"
    assert cli.main(["report", "--state-dir", str(state), "-o", str(file), "--node", "n<1>"]) == 0
    assert f"wrote {file}" in capsys.readouterr().err
    assert "Capture Canary: n&lt;1&gt;" in file.read_text(encoding="utf-8")
    assert cli.main(["report", "--state-dir", str(state), "-o", "-"]) == 0
    assert capsys.readouterr().out.startswith("<!doctype html>")


def test_a_report_that_can_not_be_written(state: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["report", "--state-dir", str(state), "-o", str(state / "no" / "x")]) == USAGE
    assert "can't write the report" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_pictures(suffix: str, state: Path, tmp_path: Path):
    pytest.importorskip("matplotlib")
    file = tmp_path / f"out.{suffix}"
    command = ["report", "--state-dir", str(state), f"--{suffix}", str(file), "--node", "$x_1$ \\f"]
    assert cli.main(command) == 0
    start = file.read_bytes()[:8]
    assert start.startswith(b"<?xml" if suffix == "svg" else b"\x89PNG")


def test_without_matplotlib_it_says_what_to_install(state: Path, tmp_path: Path):
    command = ["report", "--state-dir", str(state), "--png", str(tmp_path / "x.png")]
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from capture_canary import cli; sys.exit(cli.main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == USAGE
    assert "pip install 'capture-canary[report]'" in done.stderr


def test_the_story_ends_with_the_exit_code_of_the_worst(
    state: Path, capsys: pytest.CaptureFixture[str]
):
    assert cli.main(["story", "--state-dir", str(state), "--node", "node-1"]) == 1
    assert "DEGRADED" in capsys.readouterr().out
    store = Store(state)
    store.add_probe(make_report("unknown"), at=time.time(), stack="a")
    store.close()
    assert cli.main(["story", "--state-dir", str(state)]) == 1, "unknown closes nothing"
    store = Store(state)
    store.add_probe(make_report("healthy"), at=time.time(), stack="a")
    store.close()
    assert cli.main(["story", "--state-dir", str(state)]) == 0


def test_the_story_of_an_empty_history_is_unknown(tmp_path: Path):
    Store(tmp_path).close()
    assert cli.main(["story", "--state-dir", str(tmp_path)]) == 3


@pytest.mark.parametrize("command", COMMANDS)
def test_no_history(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main([command, "--state-dir", str(tmp_path)]) == USAGE
    assert "has the daemon run with this --state-dir?" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [], "a reader makes nothing"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("junk", [b"junk" * 4000, b"SQLite format 3\0" + bytes(5000)])
def test_a_damaged_history(
    command: str, junk: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "history.db").write_bytes(junk)
    assert cli.main([command, "--state-dir", str(tmp_path)]) == USAGE
    assert "history.db" in capsys.readouterr().err
    assert (tmp_path / "history.db").read_bytes() == junk


@pytest.mark.parametrize("command", COMMANDS)
def test_a_newer_history(
    command: str, state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(schema, "VERSION", 0)
    monkeypatch.setattr(schema, "MIGRATIONS", ())
    assert cli.main([command, "--state-dir", str(state)]) == USAGE
    assert "a newer release wrote it" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_while_the_daemon_writes(command: str, state: Path, tmp_path: Path):
    store = Store(state)
    store.add_event("reload", at=time.time())
    output = ["-o", str(tmp_path / "out.html")] if command == "report" else []
    assert cli.main([command, "--state-dir", str(state), *output]) in {0, 1}
    store.add_event("reload", at=time.time())
    assert store.problem is None
    store.close()


@pytest.mark.parametrize("when", ["", "7", "d", "-3d", "7y", "2026-13-01", "٣d", "1" * 400 + "d"])
def test_a_moment_that_is_none(when: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        cli.main(["history", f"--since={when}"])
    assert ended.value.code == USAGE
    assert "--since" in capsys.readouterr().err


def test_moments():
    assert past.since("2026-11-29") == past.since("2026-11-29T01:00+01:00") == 1795910400.0
    assert abs(past.since("36h") - (time.time() - 36 * 3600)) < 5
    assert past.since("999999w") == 0.0


def test_the_reader_that_goes_away(state: Path):
    code = f"{sys.executable} -m capture_canary.cli history --json --state-dir {state} | head -n 1"
    done = subprocess.run(["/bin/sh", "-c", code], capture_output=True, text=True, check=True)  # noqa: S602,RUF100 - the shell makes the pipe
    assert done.stderr == ""
    assert json.loads(done.stdout)["kind"] == "skip"
