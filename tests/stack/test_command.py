import os
import sys
import time
from pathlib import Path

import pytest

from capture_canary.stack.command import Command, CommandError


def script(body: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", body]


def test_gives_exit_code_and_both_outputs() -> None:
    code, output = Command(
        script("import os; os.write(1, b'a'); os.write(2, b'b'); os._exit(3)")
    ).run()
    assert (code, output) == (3, b"ab")


def test_ends_what_does_not_end_and_all_that_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    body = (
        "import os, signal\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = os.fork()\n"
        f"open({os.fspath(pids)!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
        "while True: signal.pause()"
    )
    with pytest.raises(CommandError, match="not done in 1 s"):
        Command(script(body), deadline=1.0).run()
    started = [int(line) for line in pids.read_text().split()]
    assert len(started) == 2
    end = time.monotonic() + 10
    while any(alive(pid) for pid in started):
        assert time.monotonic() < end


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"  # the grandchild's new parent may leave it unreaped


def test_output_is_bounded() -> None:
    body = "import os\nwhile True: os.write(1, b'x' * 65536)"
    with pytest.raises(CommandError, match="printed over 1000000 bytes"):
        Command(script(body), limit=1_000_000).run()


def test_a_child_that_keeps_the_pipe_does_not_hold_us() -> None:
    body = "import os, signal\nif os.fork() == 0:\n    signal.pause()"
    with pytest.raises(CommandError, match="not done"):
        Command(script(body), deadline=0.5).run()


def test_leaves_no_zombie_and_no_descriptor() -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    def zombies() -> set[str]:
        children = Path(f"/proc/self/task/{os.getpid()}/children")
        pids = children.read_text().split() if children.exists() else []
        return {pid for pid in pids if not alive(int(pid))}

    command = Command(script("pass"))
    command.run()
    before, zombies_before = (
        descriptors(),
        zombies(),
    )  # other tests' orphans may have come to this process
    for _ in range(5):
        command.run()
    assert descriptors() == before
    assert zombies() <= zombies_before


def test_starts_nothing_beside_one_that_is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    command = Command(script("import signal; signal.pause()"), deadline=0.2)
    with monkeypatch.context() as patched:  # as if the kernel could not end it
        patched.setattr("os.killpg", lambda *_: None)
        patched.setattr("capture_canary.stack.command._REAP_SECONDS", 0.1)
        with pytest.raises(CommandError, match="not done"):
            command.run()
        with pytest.raises(CommandError, match="still stuck"):
            command.run()
    stuck = command._stuck  # noqa: SLF001 - to end it after all
    assert stuck is not None
    stuck.kill()
    stuck.wait()
    with pytest.raises(CommandError, match="not done"):
        command.run()


def test_a_name_with_a_nul_is_an_error() -> None:
    with pytest.raises(CommandError, match="null byte"):
        Command(["a\0b"]).run()
