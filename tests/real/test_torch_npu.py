"""The real torch-npu, unmodified, on the emulated CANN: of the new symbol look-up (2.13) and of the old (2.9)."""

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.real import needing

from capture_canary import emulate
from capture_canary.environments import Environment
from capture_canary.execute import TRACE_DIR, traced_environment
from capture_canary.native import tracer_path
from capture_canary.trace import TracedCapture, TraceFile
from capture_canary.trend import law

pytestmark = pytest.mark.real

HERE = Path(__file__).parent
SECONDS = 240
"""Of which a busy machine takes most to import torch."""
RANKS, PEERS, K, CAPTURES = 2, 1, 4, 4


class Case(NamedTuple):
    """An environment, the versions it must bring, and what its graphs come to."""

    name: str
    torch: str
    torch_npu: str
    fate: str


CASES = (
    Case("torch-2.13.0", "2.13.0", "2.13.0", "destroyed"),
    Case("torch-2.9.0", "2.9.0", "2.9.0", "kept"),
)


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def environment(case: Case) -> Environment:
    return needing.environment(case.name)


@pytest.fixture
def base(tmp_path: Path) -> dict[str, str]:
    """An environment of nobody else's node, ports and traces."""
    kept = {
        name: os.environ[name] for name in ("HOME", "PATH", "XDG_CACHE_HOME") if name in os.environ
    }
    automatic = {f"HCCL_{side}_SOCKET_PORT_RANGE": "auto" for side in ("HOST", "NPU")}
    return {
        **kept,
        **automatic,
        "CAPTURE_CANARY_EMULATE_NODE": str(tmp_path / "node"),
        TRACE_DIR: str(tmp_path),
    }


def run(commands: Sequence[Sequence[str]], environ: dict[str, str]) -> list[Any]:
    """Run processes side by side; return what each printed. Whatever happens, none is left."""
    started = [
        subprocess.Popen(
            command,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for command in commands
    ]
    try:
        ended = [(process, *process.communicate(timeout=SECONDS)) for process in started]
    finally:
        for process in started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    for process, _, errors in ended:
        assert process.returncode == 0, errors
    return [json.loads(output) for _, output, _ in ended]


def test_one_process_computes_copies_and_captures(
    case: Case, environment: Environment, base: dict[str, str]
) -> None:
    settings = emulate.parse("cann=8.5.0,soc=a3,npus=4")
    variables = base | environment.variables(settings, base)
    (seen,) = run([[str(environment.python), str(HERE / "npu_one.py")]], variables)
    assert seen == {
        "torch": case.torch,
        "torch_npu": case.torch_npu,
        "available": True,
        "npus": 4,
        "eager": [[4096], "torch.float32", "npu:0"],
        "captured": [[4096], "torch.float32", "npu:0"],
        "came_back": True,
        "name": "Ascend910_9391",
    }


def traced(
    case: Case, environment: Environment, base: dict[str, str], emulation: str, mode: str | None
) -> dict[str, list[list[TracedCapture]]]:
    """Run two ranks with the tracer; return, by collective, the captures of each."""
    variables = base | environment.variables(emulate.parse(emulation), base)
    if mode:
        variables["HCCL_OP_EXPANSION_MODE"] = mode
    folder = Path(base[TRACE_DIR])
    script = [str(environment.python), str(HERE / "npu_rank.py")]
    rest = [str(folder / "store"), case.fate, str(K), str(CAPTURES)]
    commands = [[*script, str(rank), str(RANKS), *rest] for rank in range(RANKS)]
    printed = run(commands, traced_environment(variables, str(tracer_path())))
    # Each AllReduce sums 1 and 2, the next doubles that, as often as there are collectives in the graph.
    doubled = [3.0 * 2 ** (K - 1)] * 2
    for seen in printed:
        assert seen == {
            "AllReduce": {"eager": [3.0, 3.0], "replayed": [doubled] * CAPTURES},
            "AllGather": {"eager": [1.0, 2.0], "replayed": [[1.0, 2.0]] * CAPTURES},
        }
    captures = [_captures(path, mode) for path in sorted(folder.glob("*.trace"))]
    assert len(captures) == RANKS
    series = {"AllReduce": slice(CAPTURES), "AllGather": slice(CAPTURES, None)}
    return {name: [of_rank[part] for of_rank in captures] for name, part in series.items()}


def _captures(path: Path, mode: str | None) -> list[TracedCapture]:
    trace = TraceFile(path)
    try:
        captures = trace.poll()
        assert (trace.state, trace.problem, trace.lost) == ("finished", None, 0)
        assert trace.facts is not None
        assert trace.facts.mode == mode
        assert len(captures) == 2 * CAPTURES
        return captures
    finally:
        trace.close()


def copies(series: list[TracedCapture]) -> list[int | None]:
    return [one.capture.h2d_copies for one in series]


def counted(series: list[TracedCapture]) -> int:
    """Return the k of the law, as the tracer counted it: the same in every capture."""
    found = {sum(one.capture.collectives.values()) for one in series}
    assert len(found) == 1
    return found.pop()


def test_copies_grow_by_the_law_on_8_5(
    case: Case, environment: Environment, base: dict[str, str]
) -> None:
    seen = traced(case, environment, base, "cann=8.5.0,soc=a3", None)
    for name, ranks in seen.items():
        for series in ranks:
            assert {kind for one in series for kind in one.capture.collectives} == {name}
            k = counted(series)
            assert k == K
            assert copies(series) == [law.growing(k, PEERS, n) for n in range(1, CAPTURES + 1)]


def test_aiv_makes_no_copy_on_8_5(
    case: Case, environment: Environment, base: dict[str, str]
) -> None:
    seen = traced(case, environment, base, "cann=8.5.0,soc=a3", "AIV")
    for ranks in seen.values():
        for series in ranks:
            assert counted(series) == K
            assert copies(series) == [0] * CAPTURES


def test_nothing_grows_on_9_1(case: Case, environment: Environment, base: dict[str, str]) -> None:
    seen = traced(case, environment, base, "cann=9.1.0,soc=a3", None)
    numbers = range(1, CAPTURES + 1)
    for series in seen["AllReduce"]:
        assert copies(series) == [law.fixed_all_reduce(PEERS, n) for n in numbers]
    for series in seen["AllGather"]:
        assert copies(series) == [law.fixed_all_gather(K, PEERS, n) for n in numbers]
