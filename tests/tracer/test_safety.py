"""The tracer cannot hurt who it is loaded into: other commands, bad folders, limits, boot loops."""

import itertools
import os
import shlex
import stat
import subprocess
from contextlib import closing

import pytest

from capture_canary.trace import TraceFile
from capture_canary.trace.identity import own_identity

from .building import need, run_traced


@pytest.fixture
def client(build):
    return build.client("linked")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_other_commands_are_not_touched(tracer, folder):
    command = ["/bin/ls", "-la", "/usr", "/nowhere"]
    traced = run_traced(folder, [tracer], command)
    plain = run_traced(folder, [], command)
    assert (traced.code, traced.output, traced.errors) == (plain.code, plain.output, plain.errors)
    assert traced.code == 2
    assert names(folder) == []


def test_file_can_be_read_by_others_whatever_the_umask(client, tracer, folder):
    umask = os.umask(0o777)
    try:
        run = run_traced(folder, [tracer], [client, "many", "1"])
    finally:
        os.umask(umask)
    assert stat.S_IMODE(run.traces[0].path.stat().st_mode) == 0o644


def test_disable_file_makes_it_inert(client, tracer, folder):
    (folder / "DISABLE").touch()
    assert run_traced(folder, [tracer], [client, "plain"]).code == 0
    assert names(folder) == ["DISABLE"]


@pytest.mark.parametrize(
    "kind", ["missing", "file", "link", "relative", "long", "empty", "readonly"]
)
def test_folder_that_is_none(client, tracer, tmp_path, kind):
    (tmp_path / "file").touch()
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "readonly").mkdir()
    folder = {
        "relative": "real",
        "long": f"/{'x' * 5000}",
        "empty": "",
        "readonly": "/proc/self",  # where root cannot make files either
    }.get(kind, str(tmp_path / kind))
    run = run_traced(tmp_path, [tracer], [client, "plain"], CAPTURE_CANARY_TRACE_DIR=folder)
    assert (run.code, run.errors) == (0, "")
    assert names(tmp_path) == ["file", "link", "readonly", "real"]
    assert names(tmp_path / "real") == []


@pytest.mark.parametrize(
    ("happens", "copies"),
    [
        ("rm -r {folder}", []),
        ("rm {folder}/*.trace", [2]),
        ("truncate -s 0 {folder}/*.trace", []),
        ("f=$(echo {folder}/*.trace); rm $f; ln -s /etc/hostname $f", []),
        ("f=$(echo {folder}/*.trace); rm $f; mkfifo $f", []),
        ("f=$(echo {folder}/*.trace); rm $f; mkdir $f", []),
        ("f=$(echo {folder}/*.trace); cp $f {folder}/x; mv {folder}/x $f", [1]),
        ("chmod 0 {folder}", [1, 2]),
    ],
)
def test_folder_that_changes_between_captures(client, tracer, folder, happens, copies):
    line = happens.format(folder=shlex.quote(str(folder)))
    run = run_traced(folder, [tracer], [client, "command"], BETWEEN=line)
    assert (run.code, run.errors) == (0, "")
    if folder.is_dir():
        for path in folder.glob("*.trace"):
            if path.is_file() and not path.is_symlink():
                with closing(TraceFile(path)) as trace:
                    assert [seen.capture.h2d_copies for seen in trace.poll()] == copies


def test_full_disk(client, tracer, tmp_path):
    full = tmp_path / "full"
    full.mkdir()
    mounted = subprocess.run(
        [need("mount"), "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(full)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode != 0:
        pytest.skip("cannot mount a tmpfs here")
    try:
        run = run_traced(full, [tracer], [client, "many", "50"])
        assert (run.code, run.errors) == (0, "")
        assert 0 < len(run.captures[0]) < 50
        (full / "fill").write_bytes(b"")
    finally:
        subprocess.run([need("umount"), str(full)], check=True)


@pytest.mark.parametrize("kib", [0, 1, 4, 5, 6, 1024])
def test_file_size_limit(client, tracer, folder, kib):
    """Past RLIMIT_FSIZE a write raises SIGXFSZ, which would end the server."""
    line = f"ulimit -f {kib}; exec {shlex.quote(str(client))} many 20"
    run = run_traced(folder, [tracer], ["/bin/bash", "-c", line])
    assert (run.code, run.errors) == (0, "")
    if kib == 1024:
        assert run.copies == [1] * 20


def test_oldest_of_the_dead_goes_first(client, tracer, folder):
    boot = "00000000-1111-2222-3333-444444444444"
    for n in range(255):
        dead = folder / f"{boot}-1-{n + 1}-5.trace"
        dead.touch()
        os.utime(dead, (1000 + n, 1000 + n))
    (folder / "mine.txt").touch()
    (folder / f"{boot}-1-999-5.trace.gz").touch()
    for n in range(3):
        run_traced(folder, [tracer], [client, "many", "1"])
        assert len(list(folder.glob("*.trace"))) == 256
        assert (folder / f"{boot}-1-{n}-5.trace").exists() is False
        assert (folder / f"{boot}-1-{n + 1}-5.trace").exists() is True
    assert (folder / "mine.txt").exists()


def test_folder_full_of_the_living(client, tracer, folder):
    """With nobody dead to give way, the newcomer goes untraced."""
    own = own_identity()
    for pid_zeros, time_zeros in itertools.product(range(16), repeat=2):
        pid, time = f"{'0' * pid_zeros}{own.pid}", f"{'0' * time_zeros}{own.start_time}"
        (folder / f"{own.boot_id}-{own.pid_namespace}-{pid}-{time}.trace").touch()
    before = names(folder)
    run = run_traced(folder, [tracer], [client, "many", "1"])
    assert run.code == 0
    assert names(folder) == before


def test_boot_loop_is_broken(client, tracer, folder):
    """Two processes died before a capture ended: the third runs untraced, and says so."""
    for marks in (["armed-1"], ["armed-1", "armed-2"]):
        assert run_traced(folder, [tracer], [client, "dying"]).code == -9
        assert [n for n in names(folder) if n.startswith("armed")] == marks
    for trace in folder.glob("*.trace"):
        trace.unlink()
    assert run_traced(folder, [tracer], [client, "plain"]).code == 0
    run = run_traced(folder, [tracer], [client, "plain"])
    assert run.code == 0
    assert all(facts.inert for facts in run.facts)
    assert run.captures == [[], []]
    for mark in folder.glob("armed-*"):
        mark.unlink()
    for trace in folder.glob("*.trace"):
        trace.unlink()
    assert len(run_traced(folder, [tracer], [client, "plain"]).only) == 4


def test_capture_that_ends_clears_every_mark(client, tracer, folder):
    run_traced(folder, [tracer], [client, "dying"])
    run_traced(folder, [tracer], [client, "many", "1"])
    assert not list(folder.glob("armed-*"))


@pytest.mark.parametrize("collectives", ["0", "1", "100"])
def test_process_that_captures_nothing_leaves_no_mark(client, tracer, folder, collectives):
    run_traced(folder, [tracer], [client, "eager", collectives])
    assert not list(folder.glob("armed-*"))


def test_ranks_that_die_side_by_side_count_once(client, tracer, folder):
    line = f"for i in 1 2 3 4 5 6 7 8; do {shlex.quote(str(client))} dying-together 8 & done; wait"
    run_traced(folder, [tracer], ["/bin/bash", "-c", line], TOGETHER=str(folder / "together"))
    assert [n for n in names(folder) if n.startswith("armed")] == ["armed-1"]


@pytest.mark.parametrize("kind", ["link", "folder", "fifo"])
def test_marks_that_are_none_stop_nothing(client, tracer, folder, tmp_path, kind):
    for name in ("armed-1", "armed-2"):
        {
            "link": lambda p: p.symlink_to(tmp_path / "victim"),
            "folder": lambda p: p.mkdir(),
            "fifo": os.mkfifo,
        }[kind](folder / name)
    assert len(run_traced(folder, [tracer], [client, "plain"]).only) == 4
    assert not (tmp_path / "victim").exists()
