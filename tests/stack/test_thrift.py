"""A look at a node of thousands of processes is cheap: the system calls of each further one are counted."""

import os

import pytest
from tests.stack import nodes

from capture_canary.stack.processes import Finder

CALLS = ("open", "close", "read", "fstat", "stat", "lstat", "readlink", "listdir", "scandir")
OPEN_FILES = 20
IDLE = {"argv": ["/usr/bin/daemon"]}
KERNEL: dict[str, list[str]] = {"argv": []}


@pytest.mark.parametrize(
    ("kind", "open_files", "most"),
    [(IDLE, 0, 10), (IDLE, OPEN_FILES, 10 + OPEN_FILES), (KERNEL, 0, 6)],
    ids=["idle", "idle with open files", "kernel thread"],
)
def test_the_calls_that_one_process_more_costs(tmp_path, monkeypatch, kind, open_files, most):
    made = [0]

    def counting(real):
        def call(*args, **options):
            made[0] += 1
            return real(*args, **options)

        return call

    few, many = (
        node(tmp_path / str(count), [{"pid": pid, **kind} for pid in range(2, count)], open_files)
        for count in (4, 24)
    )
    for name in CALLS:
        monkeypatch.setattr(os, name, counting(getattr(os, name)))
    costs = []
    for proc in (few, many):
        made[0] = 0
        finder = Finder(proc, inspect=True)
        assert finder.look(nodes={}, soc="a3").servers == ()
        costs.append(made[0])
    assert 0 < costs[1] - costs[0] <= 20 * most


def node(folder, processes, open_files):
    folder.mkdir()
    proc = nodes.build({"processes": processes}, folder).proc
    for one in processes:
        for number in range(100, 100 + open_files):
            (proc / str(one["pid"]) / "fd" / str(number)).symlink_to(f"socket:[{number}]")
    return proc


def test_a_process_without_arguments_is_found_by_its_npu(tmp_path):
    hider = {"pid": 9, "argv": [], "exe": "/opt/bin/hider", "npus": [1]}
    places = nodes.build({"processes": [hider]}, tmp_path)
    (found,) = Finder(places.proc).look(nodes={}, soc="a3").servers
    assert (found.pid, found.npus, found.found_by) == (9, (1,), ("device",))
