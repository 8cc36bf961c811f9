"""The probe, whole, on the emulated CANN: what each stack comes to, and what each fault comes to."""

import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

from capture_canary import spawn
from capture_canary.model import Report, Stack
from capture_canary.probe import runner
from capture_canary.probe.base import base_environment
from capture_canary.probe.measure import ArmStarted, Event, Probe, ProbeSettings
from capture_canary.probe.messages import Kind, Started
from capture_canary.probe.plan import plan
from capture_canary.stack.npu_smi import NpuSmi
from capture_canary.trend import law

FAULT = "CAPTURE_CANARY_EMULATE_FAULT"
ALL_REDUCE_ONLY = (Kind(collective="AllReduce", graphs="destroyed"),)


def shared_memory() -> set[str]:
    """Return the names in /dev/shm that are HCCL's or ours; other programs come and go there too."""
    names = {path.name for path in Path("/dev/shm").iterdir()}  # noqa: S108 - looked at, not written
    return {name for name in names if re.search("canary|hccl|hcom|ascend", name, re.IGNORECASE)}


def probe(
    emulate: str | None, settings: ProbeSettings | None = None, **environ: str
) -> tuple[Report, list[int]]:
    """Run a probe; return its report and the pids of its ranks."""
    pids: list[int] = []

    def observe(event: Event) -> None:
        if isinstance(event, Started):
            pids.append(event.pid)

    base = base_environment({**os.environ, **environ}, emulate)
    settings = settings or ProbeSettings(budget_seconds=30)
    report = Probe(settings, base, emulated=emulate is not None, observe=observe).run()
    return report, pids


@pytest.mark.parametrize(
    ("emulate", "mode", "verdict", "cause"),
    [
        ("cann=8.5.0,soc=a3", None, "degraded", "aicpu_resource_list"),
        ("cann=9.0.0,soc=a3", None, "degraded", "aicpu_resource_list"),
        ("cann=9.1.0-beta.1,soc=a3", None, "degraded", "aicpu_resource_list"),
        ("hcomm=9.1.0-pr2405,soc=a3", None, "degraded", "aicpu_resource_list"),
        ("cann=9.1.0,hcomm=9.0.0,soc=a3", None, "degraded", "aicpu_resource_list"),
        ("cann=9.1.0,soc=a3", None, "healthy", None),
        ("cann=9.2.0,soc=a3", None, "healthy", None),
        ("cann=8.5.0,soc=a3", "AIV", "mitigated", None),
        ("cann=8.5.0,soc=a3", "HOST", "mitigated", None),
        ("cann=8.5.0,soc=a2", None, "healthy", None),
    ],
)
def test_verdict_of_a_stack(emulate: str, mode: str | None, verdict: str, cause: str | None):
    settings = ProbeSettings(mode=mode, budget_seconds=30)

    report, _ = probe(emulate, settings)

    assert (verdict, cause) == (report.verdict, report.cause)
    assert report.emulated
    assert report.control is not None
    assert report.control > 0
    assert (verdict == "degraded") == bool(report.matches_law)


def test_half_of_the_fix_grows_in_kept_all_gather_alone():
    report, _ = probe("hcomm=9.1.0-pr2405,soc=a3", ProbeSettings(full=True, budget_seconds=30))

    growing = {
        (series.collective, series.graphs)
        for series in report.series
        if (series.captures[-1].h2d_copies or 0) > (series.captures[1].h2d_copies or 0)
    }
    assert {("AllGather", "kept")} == growing


def test_counts_are_those_of_the_law():
    settings = ProbeSettings(collectives=5, kinds=ALL_REDUCE_ONLY, budget_seconds=30)

    report, _ = probe("cann=8.5.0,soc=a3", settings)

    for series in report.series:
        counted = [capture.h2d_copies for capture in series.captures]
        # one eager collective on each series' communicator: one tag before the first capture
        expected = [law.growing(5, 1, n) for n in range(1, len(counted) + 1)]
        assert counted == (expected if series.arm == "as_configured" else [0] * len(counted))
        assert {5} == {sum(capture.collectives.values()) for capture in series.captures}


def test_kept_graphs_stay_within_what_a_card_allows():
    report, _ = probe("cann=9.1.0,soc=a3", ProbeSettings(rounds=20, budget_seconds=30))

    assert {6} == {len(series.captures) for series in report.series if series.graphs == "kept"}


def test_without_the_tracer_nothing_is_healthy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    empty = tmp_path / "empty.so"
    empty.write_bytes(b"")
    monkeypatch.setattr(runner, "tracer_path", lambda: empty)

    for emulate in ("cann=8.5.0,soc=a3", "cann=9.1.0,soc=a3"):
        report, _ = probe(emulate)

        assert ("unknown", "tracer_blind") == (report.verdict, report.cause)
        assert report.control is None


BAD: dict[str, tuple[str, dict[str, str], str]] = {
    "no CANN": ("none", {}, "no CANN here"),
    "no NPU": ("npus=0", {}, "aclrtGetDeviceCount returned 207004"),
    "one NPU": ("npus=1", {}, "CANN sees 1 NPU"),
    "NPU held by another container": (
        "",
        {FAULT: "fail:aclrtSetDevice:1:107001@1"},
        "aclrtSetDevice",
    ),
    "unreadable device": ("", {FAULT: "fail:aclrtSetDevice:1:507899"}, "aclrtSetDevice"),
    "port taken": ("", {FAULT: "fail:HcclGetRootInfo:1:7@0"}, "HcclGetRootInfo"),
    "out of streams": ("", {FAULT: "fail:aclmdlRICaptureBegin:3:207008"}, "207008"),
    "out of HBM": ("hbm=1MiB", {}, "returned 24: out of"),
    "hangs in capture": ("", {FAULT: "hang:aclmdlRICaptureEnd:2@1"}, "rank 1"),
    "hangs in HCCL's initialisation": (
        "",
        {FAULT: "hang:HcclCommInitRootInfoConfig:1@0"},
        "in time",
    ),
    "hangs in destroy": ("", {FAULT: "hang:aclmdlRIDestroy:1@0"}, "in time"),
    "dies in capture": ("", {FAULT: "die:HcclAllReduce:20@1"}, "rank 1 failed in MakeCapture"),
    "dies at open": ("", {FAULT: "die:aclrtSetDevice:1@0"}, "rank 0 failed in Open"),
}


@pytest.mark.parametrize(("emulate", "environ", "reason"), BAD.values(), ids=BAD.keys())
def test_bad_node_is_unknown_with_a_reason(
    emulate: str,
    environ: dict[str, str],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    # Only what hangs takes its whole budget, which must suffice to come that far on a busy machine.
    settings = ProbeSettings(budget_seconds=8 if "hang" in str(environ) else 60)
    before = shared_memory()
    begin = time.monotonic()

    if emulate == "none":
        monkeypatch.delenv("ASCEND_HOME_PATH", raising=False)
        report, pids = probe(None, settings)
    else:
        report, pids = probe(emulate, settings, **environ)

    assert "unknown" == report.verdict
    assert reason in report.reason
    bound = settings.budget_seconds + 2 + 5  # TERM_GRACE, KILL_GRACE
    assert time.monotonic() - begin < bound
    assert [] == [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    assert before == shared_memory()
    assert [] == [path for path in tmp_path.iterdir() if path.name.startswith("capture-canary-")]


def test_unknown_mode_is_refused_by_hccl():
    report, _ = probe("", ProbeSettings(mode="aiv", budget_seconds=10))

    assert "unknown" == report.verdict
    assert "Hccl" in report.reason


def test_library_without_a_symbol_is_named(tmp_path: Path):
    library = next(Path("/lib").rglob("libm.so.6"))
    (tmp_path / "lib64").mkdir()
    for name in ("libascendcl.so", "libhccl.so"):
        (tmp_path / "lib64" / name).symlink_to(library)

    report, _ = probe(None, ProbeSettings(budget_seconds=20), ASCEND_HOME_PATH=str(tmp_path))

    assert "unknown" == report.verdict
    assert "no aclrtGetDeviceCount" in report.reason


def test_missing_library_is_named(tmp_path: Path):
    report, _ = probe(None, ProbeSettings(budget_seconds=20), ASCEND_HOME_PATH=str(tmp_path))

    assert "unknown" == report.verdict
    assert "libascendcl.so" in report.reason


@pytest.mark.parametrize(
    "fault",
    ["", "die:HcclAllReduce:150@1", "hang:HcclAllReduce:40@1"],
    ids=["good", "dies", "hangs"],
)
def test_npus_come_back(fault: str):
    base = base_environment({**os.environ, FAULT: fault}, "cann=8.5.0,soc=a3")
    npu_smi = NpuSmi(str(Path(base["ASCEND_HOME_PATH"], "bin", "npu-smi")), env={**base, FAULT: ""})
    before = npu_smi.read()
    held: list[int] = []

    def observe(event: Event) -> None:
        if not isinstance(event, ArmStarted):
            held.append(len(npu_smi.read().processes))

    budget = 15 if "hang" in fault else 60
    Probe(ProbeSettings(budget_seconds=budget), base, emulated=True, observe=observe).run()

    assert max(held) == 2  # the look itself sees what is to be gone
    after = npu_smi.read()
    assert () == after.processes
    assert [chip.hbm_used_mb for chip in before.chips] == [chip.hbm_used_mb for chip in after.chips]
    assert {"OK"} == {chip.health for chip in after.chips}


def test_sizes_come_in_another_order_each_round_beside_controls():
    settings = ProbeSettings(kinds=ALL_REDUCE_ONLY, rounds=8, seed=5, budget_seconds=60)

    report, _ = probe("cann=9.1.0,soc=a3", settings)
    captures = report.series[0].captures

    assert report.seed == 5
    rounds = [tuple(c.shape for c in captures if c.round == number) for number in range(8)]
    assert {tuple(sorted(one)) for one in rounds} == {settings.shapes}
    assert len(set(rounds)) > 1
    assert all(c.control_seconds is not None and c.control_seconds > 0 for c in captures)
    assert [c.shape for c in captures] == [
        shape for _, _, shape in plan("destroyed", rounds=8, shapes=settings.shapes, seed=5)
    ]


def test_without_preload_time_is_judged_and_convicts_only_when_seen_twice():
    # 32 copies more a capture: within the 360 captures that a series may take, times grow a hundredfold.
    settings = ProbeSettings(
        collectives=4, preload=False, floor_seconds=0.0, floor_ratio=0.0, budget_seconds=120
    )
    base = base_environment(dict(os.environ), "cann=8.5.0,soc=a3")
    verdicts = []
    ages: tuple[float | None, ...] = (None, 7200.0)
    for age in ages:

        def earlier(_stack: Stack, age: float | None = age) -> float | None:
            return age

        found = Probe(
            settings, base, emulated=True, observe=lambda _event: None, earlier=earlier
        ).run()
        assert {c.h2d_copies for one in found.series for c in one.captures} == {None}
        assert found.time is not None
        assert (found.time.decision, found.time.paired) == ("grows", True)
        assert found.time.statistic >= found.time.bound
        assert found.growth.copies is None
        verdicts.append((found.verdict, found.cause))

    assert verdicts == [("unknown", "suspect"), ("degraded", "time_only")]


def test_an_arm_that_we_could_not_start_is_as_one_not_tried(monkeypatch: pytest.MonkeyPatch):
    start, started = spawn.start, 0

    def starts_once(*args: Any, **options: Any) -> Any:
        nonlocal started
        started += 1
        if started > 1:
            raise OSError(24, "Too many open files")
        return start(*args, **options)

    monkeypatch.setattr(spawn, "start", starts_once)
    report, _pids = probe("cann=8.5.0,soc=a3")
    assert started == 2
    assert (report.verdict, report.cause) == ("degraded", "aicpu_resource_list")
    assert "meet the law" in report.reason
