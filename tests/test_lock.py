"""One probe at a time on a node, whoever asks, and however the last one ended."""

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capture_canary import lock
from capture_canary.lock import LockBusyError, LockUnusableError, acquire

HOLD = """
import os, sys
from pathlib import Path
from capture_canary.lock import acquire
os.setgroups([]) if len(sys.argv) > 2 else None
os.setuid(int(sys.argv[2])) if len(sys.argv) > 2 else None
held = acquire(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""
NOBODY = "65534"

needs_user = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "probe.lock"


def start(code: str, *args: str, close_fds: bool = True) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", code, *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        close_fds=close_fds,
    )


def is_free(path: Path) -> bool:
    try:
        acquire(path).release()
    except LockBusyError:
        return False
    return True


def busy(path: Path) -> str:
    with pytest.raises(LockBusyError) as error:
        acquire(path)
    return str(error.value)


def test_the_second_is_told_who_the_first_is(path: Path):
    with start(HOLD, str(path)) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        assert f"a probe on this node holds {path}: pid {child.pid}, since 20" in busy(path)
        child.kill()
    acquire(path).release()


def test_a_release_frees_it_and_twice_is_once(path: Path):
    held = acquire(path)
    assert "an earlier probe of this process" in busy(path)
    held.release()
    held.release()
    acquire(path).release()
    assert path.exists(), "a deleted lock file would let two hold it"


def test_death_frees_it_but_not_before_the_probe_that_was_given_it_is_dead(path: Path):
    # A daemon that hands the lock to its probe, and is then killed.
    daemon = """
import subprocess, sys
from pathlib import Path
from capture_canary.lock import acquire
held = acquire(Path(sys.argv[1]))
probe = subprocess.Popen(["cat"], pass_fds=(held.fd,), stdout=subprocess.DEVNULL)
print("held", flush=True)
probe.wait()
"""
    with start(daemon, str(path)) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == b"held\n"
        child.kill()
        child.wait()
        assert f"pid {child.pid} took it at 20" in busy(path)
        child.stdin.close()  # ends the probe, which reads it
    for _ in range(200):
        if is_free(path):
            return
        threading.Event().wait(0.02)
    pytest.fail("the lock outlived its last holder")


def test_other_children_do_not_hold_it(path: Path):
    held = acquire(path)
    code = "import sys; print('up', flush=True); sys.stdin.read()"
    with start(code, close_fds=False) as child:
        assert child.stdout is not None
        assert (
            child.stdout.readline() == b"up\n"
        )  # the kernel closes on exec after it lets us go on
        held.release()
        acquire(path).release()
        child.kill()


def test_many_at_once_are_one(path: Path):
    results: list[object] = []

    def attempt() -> None:
        try:
            results.append(acquire(path))
        except LockBusyError as error:
            results.append(error)

    threads = [threading.Thread(target=attempt) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    held = [result for result in results if isinstance(result, lock.ProbeLock)]
    assert (len(held), len(results)) == (1, 16)
    held[0].release()


def test_a_file_that_was_replaced_is_not_the_lock(path: Path, monkeypatch: pytest.MonkeyPatch):
    acquire(path).release()
    real_open = os.open
    swaps = iter(["once"])

    def swapping(name: Path, flags: int, mode: int = 0o777) -> int:
        fd = real_open(name, flags, mode)
        if name == path and next(swaps, None):
            path.unlink()
            path.touch()
        return fd

    monkeypatch.setattr(os, "open", swapping)
    held = acquire(path)
    assert os.path.samestat(os.fstat(held.fd), path.stat())
    held.release()


@pytest.mark.parametrize(
    "kind", ["symlink", "folder", "fifo", "hard link", "file above", "null byte"]
)
def test_what_cannot_be_a_lock_is_refused_and_left_as_it_was(kind: str, tmp_path: Path):
    path, other = tmp_path / "probe.lock", tmp_path / "other"
    other.write_text("precious")
    if kind == "symlink":
        path.symlink_to(other)
    elif kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "hard link":
        path.hardlink_to(other)
    elif kind == "file above":
        path = other / "probe.lock"
    else:
        path = Path("a\0b")
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(LockUnusableError, match=r"^lock file "):
        acquire(path)
    assert other.read_text() == "precious"
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.fixture
def open_folder() -> Iterator[Path]:
    # pytest's own folders are closed to other users.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@needs_user
def test_another_user_can_lock_the_file_though_not_write_it(open_folder: Path):
    path = open_folder / "probe.lock"
    acquire(path).release()
    with start(HOLD, str(path), NOBODY) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        assert "the holder left no note" in busy(path)
        child.kill()
    acquire(path).release()


@needs_user
def test_a_folder_that_may_not_be_written_is_named(open_folder: Path):
    with start(HOLD, str(open_folder / "probe.lock"), NOBODY) as child:
        _, told = child.communicate()
    assert f"lock file {open_folder}/probe.lock: Permission denied" in told.decode()


@settings(deadline=None)
@given(st.one_of(st.binary(max_size=2000), st.just(b'{"pid":1e999}'), st.just(b"[" * 3000)))
def test_a_forged_note_is_no_more_than_a_missing_one(
    tmp_path_factory: pytest.TempPathFactory, note: bytes
):
    path = tmp_path_factory.mktemp("lock") / "probe.lock"
    held = acquire(path)
    path.write_bytes(note)
    assert "the holder left no note" in busy(path)
    held.release()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"host": "\x1b[31m"}, "left no note"),
        ({"boot": "another"}, "left no note"),
        ({"since": 1e300}, "left no note"),
        ({"pid_namespace": 1, "host": "pod-1"}, "pid 77 of another container (pod-1), since 1970"),
        ({"started": 5}, "pid 77 took it at 1970"),
    ],
)
def test_a_note_is_believed_as_far_as_it_can_be_checked(
    path: Path, change: dict[str, object], told: str
):
    held = acquire(path)
    note = msgspec.json.decode(path.read_bytes())
    path.write_bytes(msgspec.json.encode(note | {"pid": 77, "since": 1.0} | change))
    assert told in busy(path)
    held.release()
