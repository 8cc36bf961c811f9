"""Damaged, newer, locked, full, read-only, removed: the store goes on and says it once."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs
from tests.builders import make_report, make_stack

from capture_canary import cli
from capture_canary.store import Limits, Store, fallback, files, schema
from capture_canary.store import store as store_module

NOW = 1_790_000_000.0
ROOT = Path(__file__).parents[2]


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def filled(folder: Path, probes: int = 8) -> Path:
    """Make a history with an open degradation in `folder` and return its file."""
    store = Store(folder)
    store.note_stacks({"abc": make_stack()}, at=NOW)
    for number in range(probes):
        store.add_probe(make_report("degraded"), at=NOW + number, stack="abc")
        store.add_skip("busy", at=NOW + number + 0.5)
    store.save("budget", 7.5)
    store.close()
    assert store.problem is None
    return store.path


def use_all(store: Store) -> None:
    """Call every public method: whatever it answers, none may raise."""
    store.add_probe(make_report("healthy"), at=NOW + 100, stack="new")
    store.add_skip("paused", at=NOW + 101)
    store.add_event("start", at=NOW + 102)
    store.note_stacks({"new": make_stack("9.1.0")}, at=NOW + 103)
    store.save("key", "value")
    store.load("budget", float)
    store.probes(1000, whole=True)
    store.probe(1)
    store.failures()
    store.open_degradations()
    store.open_verdict("abc")
    store.changes()
    store.skips()
    store.stacks()
    store.events()
    store.retire("probe", keep={"new"}, emulated=True, at=NOW + 104, reason="left")
    store.maintain(now=NOW + 105)
    assert [one.verdict for one in store.present() if one.stack == "new"] == ["healthy"]
    assert store.load("key", str) == "value"


def aside(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("history.db.*Z"))


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return filled(tmp_path_factory.mktemp("pristine")).read_bytes()


# In the schema's own text: SQLite quotes it in its message, which is no UTF-8 then.
@example(hits=[(0.06, b"\x80")], cut=None)
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    hits=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=64)),
        min_size=1,
        max_size=8,
    ),
    cut=st.one_of(st.none(), st.floats(0, 1)),
)
def test_damage_anywhere(
    hits: list[tuple[float, bytes]], cut: float | None, pristine: bytes, tmp_path: Path
) -> None:
    folder = tmp_path / "state"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    content = bytearray(pristine)
    for place, junk in hits:
        start = int(place * len(content))
        content[start : start + len(junk)] = junk
    (folder / "history.db").write_bytes(content[: int(cut * len(content))] if cut else content)
    with capture_logs():
        store = Store(folder)
        use_all(store)
        store.close()
        again = Store(folder)
    assert again.problem is None
    assert "new" in {one.stack for one in again.present()}
    again.close()


def damaged_schema(path: Path) -> None:
    """Make a name in the schema no UTF-8."""
    content = path.read_bytes()
    where = content.index(b"CREATE TABLE skips")
    path.write_bytes(content[: where + 3] + b"\x80\xff" + content[where + 5 :])


def test_a_schema_that_is_no_text_is_put_aside(tmp_path: Path) -> None:
    damaged_schema(filled(tmp_path))
    with capture_logs() as logs:
        store = Store(tmp_path)
        use_all(store)
        store.close()
    assert "history_put_aside" in {log["event"] for log in logs}
    assert len(aside(tmp_path)) == 1


def test_commands_say_that_a_schema_that_is_no_text_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged_schema(filled(tmp_path))
    assert cli.main(["history", "--state-dir", str(tmp_path)]) == 2
    assert "it can't be read" in capsys.readouterr().err


@pytest.mark.parametrize("junk", [b"", b"\0" * 8192, b"not a database at all" * 400])
def test_a_file_that_is_no_database(junk: bytes, tmp_path: Path) -> None:
    (tmp_path / "history.db").write_bytes(junk)
    with capture_logs() as logs:
        store = Store(tmp_path)
        use_all(store)
        store.close()
    warnings = [log["event"] for log in logs if log["log_level"] == "warning"]
    assert warnings == (["history_put_aside"] if junk else []), "an empty file is a new one"
    for name in aside(tmp_path):
        assert (tmp_path / name).read_bytes() == junk, "put aside, not changed"


def test_damage_while_it_runs_keeps_what_is_open(tmp_path: Path) -> None:
    filled(tmp_path, probes=100)
    store = Store(tmp_path)
    with store.path.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(os.urandom(store.path.stat().st_size - 4096 * 6))
    with capture_logs():
        use_all(store)
        store.close()
    reopened = Store(tmp_path)
    assert reopened.problem is None
    assert reopened.load("key", str) == "value"
    reopened.close()


def test_a_newer_database_is_put_aside_and_what_is_open_is_taken_along(tmp_path: Path) -> None:
    path = filled(tmp_path)
    with closing(sqlite3.connect(path)) as newer:
        newer.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    with capture_logs() as logs:
        store = Store(tmp_path)
    (log,) = [log for log in logs if log["log_level"] == "warning"]
    assert log["event"] == "history_put_aside"
    assert f"schema version {schema.VERSION + 1}" in log["error"]
    assert store.problem is None
    assert store.open_verdict("abc") is not None
    use_all(store)
    store.close()
    (name,) = aside(tmp_path)
    assert "newer" in name
    with closing(sqlite3.connect(tmp_path / name)) as kept:
        assert kept.execute("SELECT count(*) FROM probes").fetchone() == (8,)


def test_files_put_aside_do_not_fill_the_disk(tmp_path: Path) -> None:
    problem = None
    for _ in range(files.MAX_ASIDE + 3):
        (tmp_path / "history.db").write_bytes(b"junk" * 2000)
        with capture_logs():
            store = Store(tmp_path)
            use_all(store)
            problem = store.problem
            store.close()
    assert len(aside(tmp_path)) == files.MAX_ASIDE
    assert problem is not None


@pytest.mark.parametrize("version", range(schema.VERSION + 1))
def test_older_releases_are_read(version: int, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "history.db")) as old:
        for script in schema.MIGRATIONS[:version]:
            old.executescript(script)
        old.execute(f"PRAGMA user_version = {version}")
    store = Store(tmp_path)
    use_all(store)
    assert store.problem is None
    store.close()
    assert aside(tmp_path) == []


def test_a_migration_keeps_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path)
    later = (*schema.MIGRATIONS, "ALTER TABLE events ADD COLUMN extra TEXT; CREATE TABLE more (a)")
    monkeypatch.setattr(schema, "MIGRATIONS", later)
    monkeypatch.setattr(schema, "VERSION", len(later))
    store = Store(tmp_path)
    assert len(store.probes()) == 8
    store.close()
    with closing(sqlite3.connect(store.path)) as raw:
        assert raw.execute("PRAGMA user_version").fetchone() == (len(later),)
        assert raw.execute("SELECT count(*) FROM more").fetchone() == (0,)


def test_a_migration_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = filled(tmp_path)
    later = (
        *schema.MIGRATIONS,
        "CREATE TABLE more (a); CREATE UNIQUE INDEX once ON probes (stack)",
    )
    monkeypatch.setattr(schema, "MIGRATIONS", later)
    monkeypatch.setattr(schema, "VERSION", len(later))
    with capture_logs():
        store = Store(tmp_path)
        assert store.open_verdict("abc") is not None
        store.close()
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("PRAGMA user_version").fetchone() == (len(later) - 1,)
        assert raw.execute("SELECT count(*) FROM probes").fetchone() == (8,)
        tables = raw.execute("SELECT name FROM sqlite_master").fetchall()
        assert ("more",) not in tables


@pytest.fixture
def locker(tmp_path: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Start another process that holds the history's lock until it is killed."""
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        code = (
            "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
            "c.execute('BEGIN IMMEDIATE'); print('held', flush=True); sys.stdin.read()"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "history.db")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_locked_by_another_process_then_free(
    tmp_path: Path, locker: Callable[[], subprocess.Popen[str]]
) -> None:
    filled(tmp_path)
    clock = Clock()
    store = Store(tmp_path, clock=clock)
    holder = locker()
    with capture_logs() as logs:
        store.add_event("first", at=NOW)
        store.add_probe(make_report("unknown"), at=NOW + 50, stack="abc")
        assert store.problem == "database is locked"
        assert store.open_verdict("abc") is not None, "carried on in memory"
        clock.now += 61
        store.add_event("second", at=NOW)
    assert [log["event"] for log in logs] == ["history_in_memory"], "said once"
    holder.kill()
    holder.wait()
    clock.now += 61
    store.add_event("third", at=NOW)
    assert store.problem is None
    assert [event.kind for event in store.events()] == ["third", "second", "first"]
    assert len(store.probes()) == 9, "nothing twice"
    store.close()


def test_locked_at_the_start(tmp_path: Path, locker: Callable[[], subprocess.Popen[str]]) -> None:
    filled(tmp_path)
    holder = locker()
    with capture_logs():
        store = Store(tmp_path)
        use_all(store)
        holder.kill()
        holder.wait()
        store.close()
    reopened = Store(tmp_path)
    assert reopened.load("key", str) == "value"
    assert len(reopened.probes()) == 9
    reopened.close()


def run_as_nobody(folder: Path) -> str:
    """Use the store in `folder` without root's rights; return its problem."""
    code = (
        "import os, sys; from pathlib import Path\n"
        "from capture_canary.store import Store\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "store = Store(Path(sys.argv[1])); store.add_event('start', at=1.0)\n"
        "assert [event.kind for event in store.events()][0] == 'start'\n"
        "print(store.problem, len(store.probes())); store.close()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True
    )
    assert "Traceback" not in done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to give it up")
@pytest.mark.parametrize("probes", [0, 8])
def test_a_folder_that_can_not_be_written(probes: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if probes:
            filled(folder, probes).chmod(0o444)
        folder.chmod(0o755)
        said = run_as_nobody(folder)
        assert not said.startswith("None")
        assert said.endswith(str(probes))
        assert aside(folder) == []


def test_a_folder_that_can_not_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with capture_logs():
        store = Store(tmp_path / "file" / "state")
        use_all(store)
        assert store.problem is not None
        store.close()


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_something_else_in_its_place(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "history.db")
    with capture_logs():
        store = Store(tmp_path)
        use_all(store)
        store.close()
    assert store.problem is not None


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["/usr/bin/mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("a small tmpfs can't be mounted here (needs CAP_SYS_ADMIN)")
    yield folder
    subprocess.run(["/usr/bin/umount", "-l", str(folder)], check=True)


def check_a_full_disk(folder: Path, free: Callable[[], None]) -> None:
    """Fill what room the history has, see it go on, make room, see it written."""
    clock = Clock()
    store = Store(folder, clock=clock)
    with capture_logs() as logs:
        for number in range(200):
            store.add_probe(make_report("degraded", captures=20), at=NOW + number, stack="abc")
        assert store.problem is not None
        assert [log["event"] for log in logs] == ["history_in_memory"], logs
        use_all(store)
        clock.now += 61
        store.add_event("still", at=NOW)
        assert store.problem is not None
    free()
    clock.now += 61
    with capture_logs() as logs:
        store.add_event("free", at=NOW)
    assert store.problem is None, store.problem
    assert [log["event"] for log in logs] == ["history_on_disk"]
    assert store.load("key", str) == "value"
    store.close()


def test_a_full_disk(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(1_600_000))
    check_a_full_disk(small_disk, ballast.unlink)


def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    code = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from tests.store import test_trouble\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))\n"
        "free = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))\n"
        "test_trouble.check_a_full_disk(Path(sys.argv[1]), free)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_removed_while_it_runs(tmp_path: Path) -> None:
    filled(tmp_path)
    store = Store(tmp_path)
    store.path.unlink()
    with capture_logs():
        store.add_event("after", at=NOW)
        assert store.problem is None
        assert store.open_verdict("abc") is not None
    store.close()
    reopened = Store(tmp_path)
    assert [event.kind for event in reopened.events()] == ["after"]
    assert reopened.load("budget", float) == 7.5
    reopened.close()


def test_another_put_in_its_place_while_it_runs(tmp_path: Path) -> None:
    other = filled(tmp_path / "backup")
    (tmp_path / "state").mkdir()
    store = Store(tmp_path / "state")
    store.add_event("gone", at=NOW)
    other.replace(store.path)
    assert store.open_verdict("abc") is not None
    store.add_event("after", at=NOW)
    assert [event.kind for event in store.events()] == ["after"]
    store.close()
    assert aside(tmp_path / "state") == []


@pytest.mark.parametrize("delay", [0.0, 0.003, 0.02, 0.05])
def test_killed_in_the_middle_of_writing(delay: float, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.builders import make_report\n"
        "from capture_canary.store import Store\n"
        "store = Store(Path(sys.argv[1])); report = make_report(captures=30)\n"
        "for n in range(100000):\n"
        "    store.add_probe(report, at=float(n), stack='abc')\n"
        "    print(n, flush=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for _ in range(3):
        process.stdout.readline()
    with suppress(subprocess.TimeoutExpired):
        process.wait(delay)
    process.send_signal(signal.SIGKILL)
    rest = process.stdout.read().splitlines()
    process.wait()
    process.stdout.close()
    said = int(rest[-1]) if rest else 2
    store = Store(tmp_path)
    assert store.problem is None
    assert aside(tmp_path) == []
    kept = [int(probe.at) for probe in store.probes(100000, whole=True) if probe.report]
    assert kept == list(range(len(kept)))[::-1]
    assert len(kept) in {said + 1, said + 2}, "at most the write that was under way"
    store.close()


def test_memory_is_bounded_without_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fallback, "_MAX_PAGES", 64)
    monkeypatch.setattr(store_module, "_IN_MEMORY", Limits(max_bytes=100_000))
    (tmp_path / "history.db").mkdir()
    with capture_logs() as logs:
        store = Store(tmp_path)
        report = make_report("degraded", captures=100)
        for number in range(60):
            store.add_probe(report, at=NOW + number, stack="abc")
        assert [log["event"] for log in logs] == ["history_in_memory", "history_lost"]
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]  # type: ignore[union-attr]  # noqa: SLF001 - what the bound is on
        assert pages <= 64
        store.maintain(now=NOW)
        store.add_event("after", at=NOW)
        assert [event.kind for event in store.events()] == ["after"]
        store.close()
