"""The daemon as a process: probes, remembers, ends in time, survives its own death, obeys signals and settings."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.running import PATIENCE, Running, until

from capture_canary.probe.base import base_environment
from capture_canary.store import Store


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    running: list[Running] = []

    def begin(*settings: str, **options: Any) -> Running:
        running.append(Running(tmp_path, *settings, **options))
        return running[-1]

    yield begin
    for one in running:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


def test_first_verdict_comes_and_is_remembered(start: Callable[..., Running], tmp_path: Path):
    daemon = start()

    until(lambda: daemon.verdict("degraded"))
    code = daemon.end()

    assert 0 == code
    store = Store(tmp_path / "state")
    assert ["degraded"] == [probe.verdict for probe in store.probes()]
    assert [True] == [probe.emulated for probe in store.probes()]
    store.close()


def test_restart_keeps_the_verdict_without_probing_early(start: Callable[..., Running]):
    first = start()
    until(lambda: first.verdict("degraded"))
    last_run = first.metric("probe_last_run_timestamp_seconds")
    first.end()

    # Without emulation's probe at the start nothing is due for hours: the report comes from the history.
    second = start("paused=true")

    until(lambda: second.verdict("degraded"))
    assert last_run == second.metric("probe_last_run_timestamp_seconds")
    assert 0 == second.metric("probe_runs_total")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_a_running_probe_and_leaves_nothing(
    start: Callable[..., Running], number: signal.Signals
):
    daemon = start(fault="hang:aclmdlRICaptureEnd:2@0")
    until(lambda: len(daemon.ranks()) == 3)

    code = daemon.end(number)

    assert 0 == code
    assert [] == daemon.ranks()
    events = daemon.events()
    assert "stopped" == events[-1]["event"]


def test_kill_in_the_middle_of_a_probe_leaves_nothing(start: Callable[..., Running]):
    daemon = start(fault="hang:aclmdlRICaptureEnd:2@0")
    until(lambda: len(daemon.ranks()) == 3)

    daemon.end(signal.SIGKILL)

    until(lambda: not daemon.ranks())
    again = start("probe.interval=1h")
    until(lambda: again.metric("probe_runs_total") is not None)
    assert 0 == again.metric("probe_runs_total")
    again.process.send_signal(signal.SIGUSR1)
    until(lambda: again.verdict("degraded"))


def test_signal_probes_now(start: Callable[..., Running], tmp_path: Path):
    daemon = start()
    until(lambda: daemon.metric("probe_runs_total") == 1)

    command = [sys.executable, "-m", "capture_canary.cli", "probe", "--now"]
    done = subprocess.run([*command, "--state-dir", str(tmp_path / "state")], check=False)

    assert 0 == done.returncode
    until(lambda: daemon.metric("probe_runs_total") == 2)


def test_now_without_a_daemon_says_so(tmp_path: Path):
    command = [sys.executable, "-m", "capture_canary.cli", "probe", "--now"]

    done = subprocess.run(
        [*command, "--state-dir", str(tmp_path)], check=False, capture_output=True, text=True
    )

    assert 2 == done.returncode
    assert "no daemon runs" in done.stderr


def test_second_daemon_on_a_state_folder_is_refused(start: Callable[..., Running]):
    first = start("paused=true")
    until(lambda: first.metric("probe_runs_total") is not None)

    second = start("paused=true")

    assert 1 == second.process.wait(PATIENCE)
    assert "another daemon" in second.log.read_text()


def test_paused_daemon_skips_and_says_why(start: Callable[..., Running]):
    daemon = start("paused=true")

    until(lambda: daemon.metric(r'probe_skips_total\{reason="paused"\}') == 1)
    assert daemon.verdict("unknown")
    assert not daemon.verdict("healthy")


def test_too_few_free_npus_are_a_skip(start: Callable[..., Running]):
    daemon = start(emulate="npus=1")

    until(lambda: any(event["event"] == "probe_skipped" for event in daemon.events()))
    assert daemon.verdict("unknown")


def test_port_taken_is_said(start: Callable[..., Running]):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()

        daemon = start(port=other.getsockname()[1])

        assert 1 == daemon.process.wait(PATIENCE)
    assert "cannot listen" in daemon.log.read_text()


def test_bad_settings_are_named_at_the_start(start: Callable[..., Running]):
    daemon = start("probe.rounds=none")

    assert 2 == daemon.process.wait(PATIENCE)
    assert "probe.rounds" in daemon.log.read_text()


@pytest.mark.parametrize(
    ("emulate", "mode", "verdict"),
    [
        ("cann=8.5.0,soc=a3", None, "degraded"),
        ("cann=9.1.0,soc=a3", None, "healthy"),
        ("cann=8.5.0,soc=a3", "AIV", "mitigated"),
    ],
)
def test_observes_a_traced_server(
    start: Callable[..., Running], tmp_path: Path, emulate: str, mode: str | None, verdict: str
):
    daemon = start("paused=true", emulate=emulate)
    until(lambda: daemon.metric("probe_runs_total") is not None)

    serve(tmp_path, emulate, mode)

    sample = rf'verdict\{{evidence="trace",stack="\w+",verdict="{verdict}"\}}'
    until(lambda: daemon.metric(sample) == 1)
    assert daemon.verdict("unknown")  # no probe ran
    copies = daemon.metric(r'rtmemcpy_total\{evidence="trace"\}')
    assert copies is not None
    assert (copies > 0) == (mode is None)


def test_storm_of_signals_is_survived(start: Callable[..., Running]):
    daemon = start("paused=true")
    until(lambda: daemon.metric("probe_runs_total") is not None)

    for _ in range(20_000):  # what a handler interrupts may hold any lock
        daemon.process.send_signal(signal.SIGHUP)
        daemon.process.send_signal(signal.SIGUSR1)

    assert 0 == daemon.end()
    assert "stopped" == daemon.events()[-1]["event"]


def serve(folder: Path, emulate: str, mode: str | None) -> None:
    """Have a traced server load and end."""
    environ = base_environment(os.environ, emulate) | {
        "CAPTURE_CANARY_TRACE_DIR": str(folder / "traces")
    }
    (folder / "traces").mkdir(exist_ok=True)
    if mode:
        environ["HCCL_OP_EXPANSION_MODE"] = mode
    command = [sys.executable, "-m", "capture_canary.cli", "exec", "--", sys.executable]
    subprocess.run(
        [*command, str(Path(__file__).with_name("server.py")), "6"],
        env=environ,
        check=True,
        timeout=PATIENCE,
    )


def test_server_started_again_with_aiv_is_mitigated(start: Callable[..., Running], tmp_path: Path):
    daemon = start("paused=true")
    serve(tmp_path, "cann=8.5.0,soc=a3", None)
    sample = r'verdict\{{evidence="trace",stack="\w+",verdict="{}"\}}'
    until(lambda: daemon.metric(sample.format("degraded")) == 1)

    serve(tmp_path, "cann=8.5.0,soc=a3", "AIV")

    until(lambda: daemon.metric(sample.format("mitigated")) == 1)
    assert 0 == daemon.metric(sample.format("degraded"))


DATA = Path(__file__).parent.parent / "data"


def test_suspects_by_a_log(start: Callable[..., Running], tmp_path: Path):
    log = tmp_path / "vllm.log"
    log.write_text((DATA / "vllm-logs" / "degrading-synthetic.log").read_text())

    daemon = start("paused=true", f"logs={log}")

    until(lambda: any(event["event"] == "captures_slow_down" for event in daemon.events()))
    assert daemon.metric(r'verdict\{evidence="log",stack="\w+",verdict="unknown"\}') == 1
    assert daemon.metric(r'verdict\{evidence="log",stack="\w+",verdict="degraded"\}') == 0
