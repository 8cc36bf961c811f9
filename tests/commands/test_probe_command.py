"""`capture-canary probe` as a command: what is no setting is refused by name, and a signal leaves nothing behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.running import PATIENCE, until

from capture_canary import cli

EMULATE = "cann=8.5.0,soc=a3"


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        *(("--ranks", value) for value in ("", "x", "0", "65", "10000", "1.5", "٣", "9" * 5000)),
        *(("--devices", value) for value in ("", "x", "0,", "0,0", "-1,0", "0,10000", "٣,1")),
        ("--devices", ",".join(map(str, range(65)))),
        *(("--budget", value) for value in ("", "x", "0", "-1", "nan", "inf", "1e9")),
        *(
            (flag, value)
            for flag in ("--rounds", "--collectives")
            for value in ("", "x", "0", "1e3")
        ),
        *(("--plot", value) for value in ("x.txt", "[/red].txt", "[bold")),
        *(("--emulate", value) for value in ("cann=1", "soc=zz", "x", "npus=65", "cann=8.5.0,,")),
        ("--python", "/nonexistent/[/red]"),
    ],
)
def test_what_is_no_setting_is_refused_by_name(
    flag: str, value: str, capsys: pytest.CaptureFixture[str]
):
    try:
        code = cli.main(["probe", f"{flag}={value}"])
    except SystemExit as end:
        code = int(end.code or 0)

    assert 2 == code
    said = capsys.readouterr().err
    assert flag in said
    assert "_" not in said.replace("ai_cpu", "").replace("as_configured", "").split("error:")[-1]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (("--workload", "vllm", "--at-start", "--no-preload"), "--at-start"),
        (("--workload", "vllm", "--profiler", "x"), "--profiler"),
        (("--profiler", "x"), "--profiler"),
    ],
    ids=["start without tracer", "profiler of vllm", "profiler of acl"],
)
def test_what_does_not_go_together_is_refused_by_name(
    options: tuple[str, ...], name: str, capsys: pytest.CaptureFixture[str]
):
    assert 2 == cli.main(["probe", "--emulate", EMULATE, *options])
    assert name in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "doctor"])
def test_an_emulation_that_is_none_is_refused_everywhere(
    command: str, capsys: pytest.CaptureFixture[str]
):
    assert 2 == cli.main([command, "--emulate", "soc=zz"])
    assert "soc=zz" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    "step", ["aclInit:1@0", "HcclCommInitRootInfoConfig:1@1", "aclmdlRICaptureEnd:2@0"]
)
def test_a_signal_leaves_nothing(tmp_path: Path, number: signal.Signals, step: str):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    environ = {
        **os.environ,
        "TMPDIR": str(temporary),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "CAPTURE_CANARY_EMULATE_FAULT": f"hang:{step}",
    }
    command = [sys.executable, "-m", "capture_canary.cli", "probe", "--emulate", EMULATE]
    before = signal.signal(number, signal.SIG_DFL)  # under nohup a child would ignore SIGHUP
    process = subprocess.Popen(
        command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    signal.signal(number, before)
    until(lambda: len(workers(temporary)) == 3)

    process.send_signal(number)
    process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE)

    assert 128 + number == process.returncode
    assert b"Traceback" not in said
    assert [] == workers(temporary)
    assert [] == [*temporary.iterdir()]


def workers(temporary: Path) -> list[int]:
    """Return the processes of the probe whose temporary folder this is."""
    wanted = b"TMPDIR=" + os.fsencode(temporary)
    found = []
    for process in Path("/proc").iterdir():
        try:
            ours = wanted in (process / "environ").read_bytes().split(b"\0")
            if ours and b"probe.worker" in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except (OSError, ValueError):
            continue
    return found
