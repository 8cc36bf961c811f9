"""A real torch-npu process under `capture-canary exec`, and the daemon beside it: what it says of its captures."""

import ctypes.util
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from tests.real import needing
from tests.running import Running, until
from tests.tracer.building import Build, miss

from capture_canary import emulate
from capture_canary.environments import Environment
from capture_canary.native import tracer_path
from capture_canary.store import Store

pytestmark = pytest.mark.real

SECONDS = 240
RANKS, K, CAPTURES = 2, 4, 5
ENVIRONMENTS = ("torch-2.13.0", "torch-2.9.0")
"""Of the new symbol look-up and of the old."""


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def environment(request: pytest.FixtureRequest) -> Environment:
    return needing.environment(request.param)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], Running]]:
    running: list[Running] = []

    def begin(emulation: str) -> Running:
        running.append(Running(tmp_path, "paused=true", emulate=emulation))
        (tmp_path / "traces").mkdir(exist_ok=True)
        return running[-1]

    yield begin
    for one in running:
        one.process.kill()
        one.process.wait()


EXEC = (sys.executable, "-m", "capture_canary.cli", "exec", "--")


def serve(
    environment: Environment,
    emulation: str,
    folder: Path,
    by: Sequence[str] = EXEC,
    **environ: str,
) -> None:
    """Run two ranks of a server, each by `capture-canary exec`, to their ends."""
    variables = environment.variables(emulate.parse(emulation), os.environ)
    automatic = {f"HCCL_{side}_SOCKET_PORT_RANGE": "auto" for side in ("HOST", "NPU")}
    script = [str(environment.python), str(Path(__file__).with_name("npu_rank.py"))]
    rest = [str(RANKS), str(folder / "store"), "destroyed", str(K), str(CAPTURES)]
    base = {**os.environ, **variables, **automatic, **environ}
    with (folder / "stderr").open("ab") as said:
        ranks = [
            subprocess.Popen(
                [*by, *script, str(rank), *rest],
                env=base | {"CAPTURE_CANARY_TRACE_DIR": str(folder / "traces")},
                stdout=subprocess.DEVNULL,
                stderr=said,
            )
            for rank in range(RANKS)
        ]
    try:
        assert [0] * RANKS == [rank.wait(SECONDS) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()


def verdict(daemon: Running, name: str) -> bool:
    return daemon.metric(rf'verdict\{{evidence="trace",stack="\w+",verdict="{name}"\}}') == 1


MODE = "HCCL_OP_EXPANSION_MODE"
CASES: tuple[tuple[str, dict[str, str], str], ...] = (
    ("cann=8.5.0,soc=a3", {}, "degraded"),
    ("cann=8.5.0,soc=a3", {MODE: "AIV"}, "mitigated"),
    ("cann=9.1.0,soc=a3", {}, "healthy"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[2])
def test_its_captures_are_judged(
    environment: Environment,
    start: Callable[[str], Running],
    tmp_path: Path,
    case: tuple[str, dict[str, str], str],
):
    emulation, environ, expected = case
    daemon = start(emulation)

    serve(environment, emulation, tmp_path, **environ)

    until(lambda: verdict(daemon, expected))
    daemon.end()
    store = Store(tmp_path / "state")
    (judged,) = [one for one in store.probes(whole=True) if one.verdict == expected]
    store.close()
    report = judged.report
    assert report is not None
    assert "trace" == judged.evidence
    assert report.mode == environ.get(MODE, "AI_CPU")
    assert report.matches_law == (True if expected == "degraded" else None)
    # Each rank has a communicator a collective, and each of those a k of its own; growth is told as soon as it is seen.
    assert set(range(RANKS)) == {one.rank for one in report.series}
    assert {one.collective for one in report.series} <= {"AllReduce", "AllGather"}
    assert {K} == {one.collectives for one in report.series}


def mspti(folder: Path) -> str:
    """Build a libmspti.so of ours, which stands in front of CANN's memory functions as CANN's does."""
    built = Build(folder).library("libmspti.so", ["mspti.c"], "-ldl")
    return str(built)


@pytest.mark.parametrize("first", [True, False], ids=["tracer first", "tracer last"])
def test_with_an_allocator_and_a_profiler_preloaded_too(
    environment: Environment,
    start: Callable[[str], Running],
    tmp_path: Path,
    first: bool,  # noqa: FBT001  # a parameter
):
    jemalloc = ctypes.util.find_library("jemalloc")
    if jemalloc is None:
        miss("libjemalloc is not installed (Debian: apt install libjemalloc2)")
    daemon = start("cann=8.5.0,soc=a3")
    others = [jemalloc, mspti(tmp_path)]
    preload = others if first else [*others, str(tracer_path())]
    by = EXEC if first else ()

    serve(environment, "cann=8.5.0,soc=a3", tmp_path, by, LD_PRELOAD=":".join(preload))

    until(lambda: verdict(daemon, "degraded"))
    said = (tmp_path / "stderr").read_text(encoding="utf-8", errors="replace")
    seen = [int(number) for number in re.findall(r"mspti: copies=([0-9]+)", said)]
    assert len([copies for copies in seen if copies > K * CAPTURES]) == RANKS, said
    daemon.end()
    store = Store(tmp_path / "state")
    # A rank whose first captures are seen before the other's is judged, and judged again.
    judged = [one.report for one in store.probes(whole=True) if one.verdict == "degraded"]
    store.close()
    assert all(report is not None and report.matches_law for report in judged)
