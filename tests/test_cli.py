"""The command in bad surroundings: no crash may look like a verdict, and no stream need be there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from capture_canary import cli

COMMAND = (sys.executable, "-m", "capture_canary.cli")
SCHEMA = ("config", "schema")
# A /proc without processes: what else runs on this machine must not decide.
DOCTOR = ("doctor", "--emulate", "cann=9.1.0", "--proc", str(Path(__file__).parent / "data"))


def run(redirections: str, *args: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the command from a shell, which can close its streams."""
    return subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {redirections}', "sh", *COMMAND, *args],
        env={**os.environ, **environ},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("redirections", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
@pytest.mark.parametrize("args", [SCHEMA, DOCTOR, ("probe", "--help")])
def test_closed_streams_change_no_exit_code(redirections: str, args: tuple[str, ...]):
    wanted = run("", *args).returncode

    done = run(redirections, *args)

    assert wanted == done.returncode
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("args", [("--json",), ()])
def test_probe_needs_no_stream(args: tuple[str, ...]):
    emulate = ("--emulate", "cann=9.1.0,soc=a3")

    done = run("<&- >&- 2>&-", "probe", *emulate, *args)

    assert 0 == done.returncode


@pytest.mark.parametrize("args", [SCHEMA, ("config", "reference"), DOCTOR])
def test_full_disk_is_said_and_no_verdict(args: tuple[str, ...]):
    done = run(">/dev/full", *args)

    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "No space left on device" in done.stderr


@pytest.mark.parametrize("args", [SCHEMA, ("config", "reference"), ("probe", "--help")])
def test_terminal_that_knows_ascii_alone(args: tuple[str, ...]):
    done = run("", *args, PYTHONIOENCODING="ascii")

    assert 0 == done.returncode
    assert done.stdout.isascii()


def test_crash_is_no_verdict(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def crash(_args: object) -> int:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr("capture_canary.commands.story.run", crash)

    code = cli.main(["story"])

    assert code == 3  # 1 would say degraded
    assert "a fault of ours" in capsys.readouterr().err


def test_reader_that_goes_away(tmp_path: Path):
    err = tmp_path / "err"

    command = [*COMMAND, *SCHEMA]
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@" 2>"$0" | true', str(err), *command], check=False, timeout=60
    )

    assert 0 == done.returncode
    assert "" == err.read_text()
