"""The start-script wrapper: when a server starts behind it, with what, and when it does not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from capture_canary.lock import acquire

WRAPPER = Path(__file__).parents[2] / "deploy" / "gate" / "with-gate"
CANARY = Path(sys.executable).with_name("capture-canary")
SERVER = ("sh", "-c", 'echo "serves with ${LD_PRELOAD-nothing}"')


@pytest.fixture
def start(tmp_path):
    """Start a server behind the wrapper on an emulated node; what it said, and how it ended."""

    def run(*words, emulate="cann=9.0.0,soc=a3", **settings):
        environ = {
            **os.environ,
            "CAPTURE_CANARY": str(CANARY),
            "CAPTURE_CANARY_EMULATE": emulate,
            "CAPTURE_CANARY_LOCK_FILE": str(tmp_path / "run" / "probe.lock"),
            "CAPTURE_CANARY_GATE_WAIT": "0",
            **{f"CAPTURE_CANARY{name}": value for name, value in settings.items()},
        }
        done = subprocess.run(
            [WRAPPER, *words], env=environ, capture_output=True, text=True, check=False, timeout=300
        )
        return done.returncode, done.stdout, done.stderr

    return run


def served(said, *, traced=True):
    return ("libcapturetrace.so" in said) if traced else said == "serves with nothing\n"


def test_a_degraded_node_warns_and_the_server_starts_traced(start):
    code, said, errors = start(*SERVER)
    assert (code, served(said)) == (0, True)
    assert "capture-canary gate: degraded" in errors
    assert "the server starts" in errors


def test_block_keeps_it_from_starting(start):
    code, said, errors = start(*SERVER, _GATE="block")
    assert (code, said) == (1, "")
    assert "not started: copies prove the fault" in errors


def test_block_lets_a_healthy_node_start(start):
    code, said, errors = start(*SERVER, emulate="cann=9.1.0,soc=a3", _GATE="block")
    assert (code, served(said)) == (0, True)
    assert "capture-canary gate: healthy" in errors


def test_off_probes_nothing(start):
    assert start(*SERVER, _GATE="off")[2] == ""


def test_somebody_else_s_probe_is_not_waited_for_beyond_the_time(start, tmp_path):
    lock = acquire(tmp_path / "run" / "probe.lock")
    code, said, errors = start(*SERVER, _GATE="block")
    lock.release()
    assert (code, served(said)) == (0, True)
    assert "no probe: somebody else probed on this node for 0 s" in errors


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"_GATE_NPUS": "0,x"}, "nothing is known of this node's captures (exit code 2)"),
        ({"_GATE_NPUS": "70,71"}, "capture-canary gate: unknown"),
        ({"_LOCK_FILE": "/proc/nowhere/lock"}, "no probe: no lock to be had at /proc/nowhere/lock"),
        ({"_EMULATE": "cann=none"}, "capture-canary gate: unknown"),
    ],
)
def test_what_is_not_known_keeps_no_server_from_starting(start, settings, said):
    code, served_with, errors = start(*SERVER, _GATE="block", **settings)
    assert (code, served(served_with), said in errors) == (0, True, True), errors


@pytest.mark.parametrize("seconds", [{"_GATE_BUDGET": "1.5"}, {"_GATE_WAIT": "1m"}])
def test_seconds_that_are_none_are_said_and_it_probes(start, seconds):
    code, said, errors = start(*SERVER, emulate="cann=9.1.0,soc=a3", **seconds)
    assert (code, served(said)) == (0, True)
    assert "seconds are whole numbers" in errors
    assert "capture-canary gate: healthy" in errors


def test_without_us_the_server_starts_untraced(start):
    code, said, errors = start(*SERVER, **{"": "/nowhere/capture-canary"})
    assert (code, served(said, traced=False)) == (0, True)
    assert "no probe: there is no /nowhere/capture-canary" in errors


@pytest.mark.parametrize(("words", "gate"), [((), "warn"), (SERVER, "always")])
def test_wrong_usage_is_said(start, words, gate):
    code, said, errors = start(*words, _GATE=gate)
    assert (code, said) == (2, "")
    assert errors.startswith("with-gate: ")


def test_the_server_s_own_exit_code_comes_back(start):
    assert start("sh", "-c", "exit 42", _GATE="off")[0] == 42
