"""`capture-canary exec`: the tracer comes first, and what was preloaded stays."""

import subprocess
import sys

import pytest

from capture_canary.execute import DEFAULT_TRACE_DIR, traced_environment

TRACER = "/opt/libcapturetrace.so"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, TRACER),
        ("", TRACER),
        ("/a.so", f"{TRACER}:/a.so"),
        ("/a.so:/b.so", f"{TRACER}:/a.so:/b.so"),
        ("/a.so  /b.so", f"{TRACER}:/a.so:/b.so"),
        (TRACER, TRACER),
        (f"/a.so:{TRACER}", f"{TRACER}:/a.so"),
    ],
)
def test_preload(before, after):
    base = {"PATH": "/bin"} if before is None else {"PATH": "/bin", "LD_PRELOAD": before}
    made = traced_environment(base, TRACER)
    assert made["LD_PRELOAD"] == after
    assert made["PATH"] == "/bin"


def test_folder_of_traces():
    assert traced_environment({}, TRACER)["CAPTURE_CANARY_TRACE_DIR"] == DEFAULT_TRACE_DIR
    chosen = {"CAPTURE_CANARY_TRACE_DIR": "/here"}
    assert traced_environment(chosen, TRACER)["CAPTURE_CANARY_TRACE_DIR"] == "/here"


def execute(*words):
    command = [sys.executable, "-m", "capture_canary.cli", "exec", "--", *words]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_command_runs_traced():
    program = "from capture_canary.trace import tracer_loaded; print(tracer_loaded())"
    done = execute(sys.executable, "-c", program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, "no command"),
        (["/no/such/command"], 127, "/no/such/command: not found"),
        (["/"], 126, "/: Permission denied"),
    ],
)
def test_command_that_cannot_run(words, code, said):
    done = execute(*words)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_command_without_a_name_is_no_command():
    done = execute("")
    assert done.returncode == 2
    assert "no command" in done.stderr
