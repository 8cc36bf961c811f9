import os
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from capture_canary.gate import collect
from capture_canary.gate.model import Holders, Place, Rules, Snapshot
from capture_canary.stack import devices, npu_smi
from capture_canary.stack.npus import Chip, Npus, NpusUnknownError, Process
from capture_canary.stack.patience import Patience

DATA = Path(__file__).parent.parent / "data" / "npu-smi"
BUSY = npu_smi.parse((DATA / "a3-one-npu-busy.txt").read_text())
IDLE = npu_smi.parse((DATA / "a2-idle.txt").read_text())


def unreadable() -> Npus:
    raise NpusUnknownError("no answer")


def never() -> Npus:
    raise AssertionError("was asked")


def exporter_chip(phy_id: int, processes: int | None, health: str = "OK") -> Chip:
    return Chip(
        npu=None,
        chip=None,
        phy_id=phy_id,
        name="",
        health=health,
        bus_id=None,
        hbm_used_mb=1,
        hbm_total_mb=2,
        aicore=0,
        processes=processes,
    )


def counted(*chips: Chip, processes: tuple[Process, ...] = ()) -> Npus:
    return Npus(source="exporter", version=None, chips=chips, processes=processes)


def fake_proc(
    folder: Path, opened: dict[int, list[str]], namespace: str = "pid:[4026531836]"
) -> Path:
    (folder / "self" / "ns").mkdir(parents=True)
    (folder / "self" / "ns" / "pid").symlink_to(namespace)
    for pid, targets in opened.items():
        fds = folder / str(pid) / "fd"
        fds.mkdir(parents=True)
        for number, target in enumerate(targets):
            (fds / str(number)).symlink_to(target)
    return folder


def test_only_character_devices_are_device_nodes(tmp_path: Path) -> None:
    (tmp_path / "davinci0").touch()
    (tmp_path / "davinci1").symlink_to("/dev/null")
    (tmp_path / "davinci_manager").symlink_to("/dev/null")
    (tmp_path / "davinci2").symlink_to(tmp_path / "nothing")
    assert devices.device_nodes(tmp_path) == {1: Path("/dev/null").stat().st_rdev}
    assert devices.device_nodes(tmp_path / "nothing") == {}


def test_finds_who_holds_a_device(tmp_path: Path) -> None:
    opened = {
        1: [],
        40: ["/dev/davinci3", "/dev/davinci_manager"],
        41: ["/x/dev/davinci4", "pipe:[1]"],
    }
    holders = collect.open_devices({}, fake_proc(tmp_path, opened))
    assert holders.pids == {3: (40,)}
    assert holders.complete


def test_the_device_number_tells_more_than_a_name_in_a_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # /dev/null stands for a container's davinci0 that is the node's davinci5.
    monkeypatch.setattr(devices, "_OPEN", re.compile("/dev/nul(l)"))
    proc = fake_proc(tmp_path, {1: [], 40: ["/dev/null"]})
    holders = collect.open_devices({5: Path("/dev/null").stat().st_rdev}, proc)
    assert holders.pids == {5: (40,)}


def test_processes_of_a_pid_namespace_are_not_all(tmp_path: Path) -> None:
    holders = collect.open_devices({}, fake_proc(tmp_path, {1: []}, "pid:[4026532001]"))
    assert not holders.complete
    assert "hostPID" in holders.why


def test_a_namespace_that_cannot_be_told_is_not_the_nodes(tmp_path: Path) -> None:
    proc = fake_proc(tmp_path, {1: [], 40: ["/dev/davinci3"]})
    (proc / "self" / "ns" / "pid").unlink()
    holders = collect.open_devices({}, proc)
    assert holders.pids == {3: (40,)}
    assert not holders.complete
    assert "hostPID" in holders.why


def test_hidden_processes_are_not_all(tmp_path: Path) -> None:
    assert not collect.open_devices({}, fake_proc(tmp_path, {7: []})).complete


def test_processes_that_may_not_be_looked_at_are_not_all(tmp_path: Path) -> None:
    proc = fake_proc(tmp_path, {1: []})
    (proc / "9").mkdir()
    (proc / "9" / "fd").touch()  # ENOTDIR stands for EACCES, which root never gets
    holders = collect.open_devices({}, proc)
    assert not holders.complete
    assert "1 processes may not be looked at" in holders.why


def test_a_process_that_hangs_a_look_is_not_taken_for_one_without_npus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()
    real = devices.opened_by

    def hanging(folder: str, by_number: dict[int, int]) -> set[int] | None:
        if "/40/" in folder:  # as a stat of a file whose file system does not answer
            answers.wait()
        return real(folder, by_number)

    monkeypatch.setattr(collect, "opened_by", hanging)
    monkeypatch.setattr(collect, "_PATIENCE", Patience(0.02))
    proc = fake_proc(tmp_path, {1: [], 40: ["/dev/davinci3"], 41: ["/dev/davinci4"]})
    try:
        holders = collect.open_devices({}, proc)
    finally:
        answers.set()
    assert holders.pids == {4: (41,)}
    assert not holders.complete


def test_a_process_that_ended_meanwhile_is_no_obstacle(tmp_path: Path) -> None:
    proc = fake_proc(tmp_path, {1: []})
    (proc / "9").mkdir()
    assert collect.open_devices({}, proc).complete


def test_reads_the_real_proc() -> None:
    holders = collect.open_devices(devices.device_nodes())
    assert holders.why
    assert collect.open_devices({}, Path("/nowhere")).complete is False


def root(folder: Path, *, effective: str = "00000000a80425fb", docker: bool = True) -> Path:
    (folder / "proc/self").mkdir(parents=True)
    (folder / "proc/sys/kernel").mkdir(parents=True)
    (folder / "proc/self/status").write_text(f"Name:\tx\nCapEff:\t{effective}\n")
    (folder / "proc/sys/kernel/cap_last_cap").write_text("40\n")
    if docker:
        (folder / ".dockerenv").touch()
    return folder


@pytest.mark.parametrize(
    ("effective", "docker", "environ", "expected"),
    [
        ("00000000a80425fb", True, {}, "container"),
        ("000001ffffffffff", True, {}, "privileged"),
        ("000000ffffffffff", True, {}, "container"),  # all but the newest capability
        ("000001fffffffffe", True, {}, "container"),  # all but the first
        ("000001ffffffffff", False, {}, "host"),
        ("000001ffffffffff", False, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "privileged"),
        ("none", True, {}, "container"),
    ],
)
def test_where_we_run(
    tmp_path: Path, effective: str, environ: dict[str, str], expected: str, *, docker: bool
) -> None:
    assert collect.place(root(tmp_path, effective=effective, docker=docker), environ) == expected


def test_a_container_that_hides_its_capabilities_is_ordinary(tmp_path: Path) -> None:
    (tmp_path / ".dockerenv").touch()
    assert collect.place(tmp_path, {}) == "container"


def test_the_exporter_adds_processes_that_npu_smi_does_not_show() -> None:
    both = collect.merged(IDLE, counted(exporter_chip(0, 1), exporter_chip(1, 0)))
    # 2 and 3 are not on the page: whether somebody holds them is not known.
    assert [c.processes for c in both.chips] == [1, 0, None, None]
    assert [c.hbm_used_mb for c in both.chips] == [3380, 3381, 3382, 3383]


def test_the_exporter_never_frees_a_chip() -> None:
    free = counted(*(exporter_chip(n, 0) for n in range(6)))
    both = collect.merged(BUSY, free)
    assert [c.processes for c in both.chips] == [0, 0, 0, 0, 1, 1]
    assert both.processes == BUSY.processes


@pytest.mark.parametrize(
    ("shown", "counted_", "both"), [("a", "b", "a"), (None, "b", "b"), ("a", None, "a")]
)
def test_an_address_that_either_tells_is_known(
    shown: str | None, counted_: str | None, both: str | None
) -> None:
    ours, theirs = (counted(replace(exporter_chip(0, 0), bus_id=bus)) for bus in (shown, counted_))
    assert [chip.bus_id for chip in collect.merged(ours, theirs).chips] == [both]


def test_the_worse_health_counts() -> None:
    both = collect.merged(IDLE, counted(exporter_chip(0, 0, health="not OK")))
    assert [c.health for c in both.chips] == ["not OK", "OK", "OK", "OK"]


@pytest.mark.parametrize(
    ("smi", "exporter", "source", "error"),
    [
        (lambda: IDLE, None, "npu-smi info", None),
        (lambda: IDLE, unreadable, "npu-smi info", "no answer"),
        (unreadable, lambda: counted(exporter_chip(0, 0)), "exporter", None),
        (lambda: IDLE, counted, "npu-smi info and exporter", None),
    ],
)
def test_looks_where_it_can(
    smi: Callable[[], Npus], exporter: Callable[[], Npus] | None, source: str, error: str | None
) -> None:
    npus, _, exporter_error = collect.look_at_npus(smi, exporter)
    assert npus is not None
    assert npus.source == source
    assert exporter_error == error


def test_nothing_seen_says_why() -> None:
    assert collect.look_at_npus(unreadable, unreadable) == (None, "no answer", "no answer")


def test_who_sees_every_process() -> None:
    assert collect.sees_all("host", exporter_believed=False)[0]
    assert collect.sees_all("privileged", exporter_believed=False)[0]
    assert collect.sees_all("container", exporter_believed=True)[0]
    assert not collect.sees_all("container", exporter_believed=False)[0]


def good_page() -> Npus:
    return counted(*(exporter_chip(n, 0) for n in range(4)))


@pytest.mark.parametrize(
    ("where", "exporter", "everyone"),
    [
        ("container", None, False),
        ("container", unreadable, False),
        ("container", good_page, True),
        ("host", None, True),
        ("host", unreadable, True),
    ],
)
def test_only_an_exporter_that_is_believed_sees_more_than_a_container(
    monkeypatch: pytest.MonkeyPatch,
    where: Place,
    exporter: Callable[[], Npus] | None,
    *,
    everyone: bool,
) -> None:
    monkeypatch.setattr(collect, "place", lambda: where)
    snapshot = collect.look(Snapshot(), Rules(), lambda: IDLE, exporter)
    assert snapshot.sees_all is everyone
    assert snapshot.place == where


def test_holders_are_looked_for_where_npus_are_real() -> None:
    holders = Holders(pids={0: (7,)}, complete=True, why="all were looked at")
    looked: list[dict[int, int]] = []

    def look(nodes: dict[int, int]) -> Holders:
        looked.append(nodes)
        return holders

    real = collect.look(Snapshot(), Rules(), lambda: IDLE, holders=look)
    assert real.holders is holders
    assert frozenset(looked[0]) == real.nodes
    emulated = collect.look(Snapshot(emulated=True), Rules(), lambda: IDLE, holders=look)
    assert emulated.holders is None
    assert len(looked) == 1


@pytest.mark.parametrize(("cpus", "load"), [(4, 1.5), (1, 6.0), (None, 6.0)])
def test_load_is_that_of_five_minutes_a_cpu(
    monkeypatch: pytest.MonkeyPatch, cpus: int | None, load: float
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (1.0, 6.0, 11.0))
    monkeypatch.setattr(os, "cpu_count", lambda: cpus)
    assert collect.load_a_cpu() == load


def test_a_machine_that_does_not_tell_its_load_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def untold() -> tuple[float, float, float]:
        raise OSError

    monkeypatch.setattr(os, "getloadavg", untold)
    assert collect.load_a_cpu() is None


def test_a_paused_node_runs_no_command() -> None:
    known = Snapshot(paused="by the fleet's ConfigMap")
    assert collect.look(known, Rules(), never, never) is known


def test_looks_at_this_machine() -> None:
    snapshot = collect.look(Snapshot(emulated=True), Rules(), lambda: IDLE)
    assert snapshot.npus is IDLE
    assert snapshot.load is not None


def test_a_node_without_npu_smi_is_unknown() -> None:
    snapshot = collect.look(Snapshot(), Rules(), unreadable)
    assert snapshot.npus is None
    assert snapshot.npus_error == "no answer"
