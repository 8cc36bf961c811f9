"""The runner against children that misbehave: whatever they do, a reason in time, and nothing left behind."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.probe.scripted import ENDED, STARTED, run, spec
from tests.running import children as children_of
from tests.running import until

from capture_canary import spawn
from capture_canary.identity import pid_namespace, start_time
from capture_canary.probe import children, runner, watch
from capture_canary.probe.cancel import CANCELLED, Cancel
from capture_canary.probe.messages import Ended, Record, Started


def descriptors() -> list[str]:
    return sorted(path.name for path in Path("/proc/self/fd").iterdir())


def state(pid: str) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_good_end():
    outcome = run(f"os.write(records, {STARTED + ENDED!r})")

    assert outcome.failure is None
    assert [Started, Ended] == [type(record) for record in outcome.records]
    assert [] == outcome.leftover


PAUSED = """
from tests.probe.scripted import ENDED, STARTED, run
outcome = run(f"time.sleep(1)\\nos.write(records, {STARTED + ENDED!r})", deadline=3.0)
print(outcome.failure, len(outcome.records))
"""


@pytest.mark.parametrize("seconds", [0.5, 3.0], ids=["in time", "beyond its deadline"])
def test_what_was_written_while_we_were_paused_is_read(seconds: float):
    prober = subprocess.Popen([sys.executable, "-c", PAUSED], stdout=subprocess.PIPE, text=True)
    with prober:
        (child,) = until(lambda: children_of(prober.pid))
        prober.send_signal(signal.SIGSTOP)
        until(lambda: state(child) == "Z")
        time.sleep(seconds)
        prober.send_signal(signal.SIGCONT)
        assert prober.communicate(timeout=60)[0].split() == ["None", "2"]


def test_its_python_is_lent_this_package_and_nothing_beside_it():
    outcome = run(
        """
        import capture_canary.probe.messages
        sys.exit(repr([os.listdir(path) for path in sys.path if "capture-canary-" in path]))
        """
    )

    assert outcome.failure is not None
    assert "[['capture_canary']]" in outcome.failure


def test_a_plan_of_many_captures_may_write_as_many_records(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(watch, "MAX_OUTPUT", 1 << 16)
    script = f"for _ in range(2000): os.write(records, {STARTED!r})\nos.write(records, {ENDED!r})"

    assert "flooded its records" in (run(script).failure or "")
    assert run(script, rounds=1000).failure is None


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("os.write(records, b'no json at all\\n')", "what is no record"),
        ('os.write(records, b\'{"type": "ended", "type": 3}\\n\')', "what is no record"),
        ("os.write(records, b'\\xff\\xfe\\n')", "what is no record"),
        ("os.write(records, b'x' * 5000)\ntime.sleep(60)", "a line of more than 4096 bytes"),
        (f"while True: os.write(records, {STARTED!r})", "flooded its records"),
        ("while True: os.write(2, b'e' * 65536)", "flooded its stderr"),
        ("sys.exit(7)", "status 7"),
        ("sys.exit('libascendcl.so went away')", "libascendcl.so went away"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "status -11"),
    ],
)
def test_bad_child_gives_a_reason(script: str, reason: str):
    outcome = run(script)

    assert outcome.failure is not None
    assert reason in outcome.failure
    assert [] == outcome.leftover


@pytest.mark.parametrize("lacking", ["folder", "program", "descriptors"])
def test_child_that_cannot_be_started_gives_a_reason(
    lacking: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    command = [sys.executable]
    if lacking == "folder":
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    elif lacking == "program":
        command = [str(tmp_path / "none")]
    before = descriptors()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if lacking == "descriptors":
        free = [number for number in range(len(before) + 3) if str(number) not in before]
        resource.setrlimit(resource.RLIMIT_NOFILE, (free[2], hard))  # two more, wherever they lie

    try:
        outcome = runner.run_arm(
            spec(), os.environ, mode=None, on_record=lambda _record: True, command=command
        )
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert outcome.failure is not None
    assert "could not be started" in outcome.failure
    assert outcome.kind == "start"
    assert before == descriptors()


def test_work_of_killed_runners_is_removed_and_nobody_elses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    namespace, own = pid_namespace(), f"{os.getpid()}-{start_time(os.getpid())}"
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    kept = [
        f"capture-canary-{namespace}-{own}-living",
        f"capture-canary-{namespace + 1}-{gone.pid}-1-of-another-container",
        f"capture-canary-{namespace}-{'9' * 30}-1-no-pid",
        "capture-canary-other",
    ]
    for name in kept:
        (tmp_path / name).mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / f"capture-canary-{namespace}-{gone.pid}-1-link").symlink_to(outside)
    orphan = tmp_path / f"capture-canary-{namespace}-{gone.pid}-1-orphan"
    (orphan / "python").mkdir(parents=True)
    (orphan / "python" / "link").symlink_to(outside)

    run(f"os.write(records, {ENDED!r})")

    left = sorted(path.name for path in tmp_path.iterdir())
    assert sorted([*kept, "outside", f"capture-canary-{namespace}-{gone.pid}-1-link"]) == left


def test_work_that_could_not_be_removed_goes_with_the_next(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with monkeypatch.context() as short:  # of descriptors, say: rmtree needs some, and says nothing
        short.setattr("shutil.rmtree", lambda *_args, **_options: None)
        run(f"os.write(records, {ENDED!r})")
    assert len([*tmp_path.iterdir()]) == 1

    run(f"os.write(records, {ENDED!r})")

    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    "script",
    [
        "time.sleep(60)",
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(60)",
        "os.kill(os.getpid(), signal.SIGSTOP)",
    ],
    ids=["hangs", "ignores SIGTERM", "stops itself"],
)
def test_deadline_holds(script: str):
    begin = time.monotonic()

    outcome = run(script, deadline=0.5)

    assert outcome.failure is not None
    assert "deadline" in outcome.failure
    bound = 0.5 + children.TERM_GRACE + children.KILL_GRACE
    assert time.monotonic() - begin < bound


ESCAPES = {
    "forks": "os.fork() or time.sleep(60)",
    "leaves the group": "os.fork() or (os.setsid(), time.sleep(60))",
    "forks twice": "os.fork() or (os.setsid(), os.fork() or time.sleep(60))",
    "holds no pipe": "os.fork() or (os.setsid(), os.close(records), os.close(2), time.sleep(60))",
    "ignores SIGTERM": "os.fork() or (signal.signal(signal.SIGTERM, signal.SIG_IGN), time.sleep(60))",
}


@pytest.mark.parametrize("script", ESCAPES.values(), ids=ESCAPES.keys())
def test_no_process_survives(script: str, monkeypatch: pytest.MonkeyPatch):
    marks: list[str] = []
    sweep = children.sweep

    def remember(child: subprocess.Popen[bytes], mark: str) -> list[int]:
        marks.append(mark)
        return sweep(child, mark)

    monkeypatch.setattr(children, "sweep", remember)

    outcome = run(f"{script}\nos.write(records, {ENDED!r})")

    assert outcome.failure is None
    assert [] == outcome.leftover
    assert [[]] == [children.strays(mark) for mark in marks]


def test_what_others_started_keeps_its_exit_code():
    probe = spawn.start(["sleep", "60"], start_new_session=True)
    helper = spawn.start(["sh", "-c", "exit 7"])
    os.waitid(os.P_PID, helper.pid, os.WEXITED | os.WNOWAIT)  # ended, and not yet waited for

    assert [] == children.sweep(probe, "no mark")

    assert helper.wait() == 7


def test_nothing_else_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before, children_before = (
        descriptors(),
        children_of(os.getpid()),
    )  # other tests' orphans may be among these

    run("open(os.environ['CAPTURE_CANARY_TRACE_DIR'] + '/left', 'w').write('x')")

    assert [] == list(tmp_path.iterdir())
    assert before == descriptors()
    assert children_of(os.getpid()) <= children_before


def test_stop_closes_the_childs_input():
    seen: list[Record] = []

    def stop_at_once(record: Record) -> bool:
        seen.append(record)
        return False

    outcome = run(
        f"os.write(records, {STARTED!r}); sys.stdin.read(); os.write(records, {ENDED!r})",
        on_record=stop_at_once,
    )

    assert outcome.failure is None
    assert [Started, Ended] == [type(record) for record in seen]


@pytest.mark.parametrize(
    "script",
    [
        "sys.stdin.read()",
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(60)",
    ],
    ids=["obeys", "does not"],
)
def test_cancel_ends_it_soon(script: str):
    cancel = Cancel()
    threading.Timer(0.2, cancel.request).start()
    begin = time.monotonic()

    outcome = run(script, cancel=cancel)

    cancel.close()
    assert CANCELLED == outcome.failure
    assert [] == outcome.leftover
    assert time.monotonic() - begin < 10  # its own deadline


def test_environment_is_the_arms_own():
    base = {
        "ASCEND_HOME_PATH": "/cann",
        "HCCL_IF_IP": "10.0.0.1",
        "HCCL_OP_EXPANSION_MODE": "HOST",
        "RANK_TABLE_FILE": "/table.json",
        "LD_PRELOAD": "/libjemalloc.so",
        "LD_LIBRARY_PATH": "/driver",
        "PATH": "/bin",
    }

    environment = runner.arm_environment(base, mode="AIV", work=Path("/w"))

    hccl = {name: value for name, value in environment.items() if name.startswith(("HCCL", "RANK"))}
    expected = {
        "HCCL_HOST_SOCKET_PORT_RANGE": "auto",
        "HCCL_NPU_SOCKET_PORT_RANGE": "auto",
        "HCCL_OP_EXPANSION_MODE": "AIV",
    }
    assert expected == hccl
    assert "/cann/lib64:/driver" == environment["LD_LIBRARY_PATH"]
    assert environment["LD_PRELOAD"].endswith("/libcapturetrace.so")
    assert "/bin" == environment["PATH"]
