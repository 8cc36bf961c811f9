"""What the tracer adds to a server's start, and what an arm of the vLLM probe takes beside a bare start of its LLM.

Real torch-npu and real vLLM on the emulated CANN. Runs of each kind take turns, so that what else the machine does
falls on all of them; ratios are of the runs of one turn.
"""

import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import capture_canary
from capture_canary import emulate, environments
from capture_canary.environments import Environment
from capture_canary.execute import traced_environment
from capture_canary.native import tracer_path
from capture_canary.probe.measure import Probe, ProbeSettings
from capture_canary.probe.messages import Spec, encode
from capture_canary.probe.settings import of_vllm

HERE = Path(__file__).parent
TURNS = 5
"""Unless the variable TURNS says another number from 3 to 10."""
RANKS = 2
K, CAPTURES = 5, 50
"""Of torch's start: graphs as of a model of two layers, as many as a server's load captures."""
T_975 = {2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
"""Quantile of Student's t by degrees of freedom, for a 95 % interval."""


class Cost(NamedTuple):
    """What one run took."""

    seconds: float
    cpu: float
    """Of all its processes, s."""


def cost(run: Callable[[], None]) -> Cost:
    """Run something in child processes."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(time.monotonic() - begin, used)


def base(environment: Environment, folder: str, *, traced: bool) -> dict[str, str]:
    """Return the environment of a server, with or without the tracer."""
    variables = environment.variables(emulate.parse("cann=8.5.0,soc=a3"), os.environ)
    ports = {f"HCCL_{side}_SOCKET_PORT_RANGE": "auto" for side in ("HOST", "NPU")}
    own = {"CAPTURE_CANARY_TRACE_DIR": folder}
    plain = {**os.environ, **variables, **ports, **own}
    return traced_environment(plain, str(tracer_path())) if traced else plain


def torch_start(environment: Environment, *, traced: bool) -> None:
    """Run two ranks that capture as a server's load does."""
    with tempfile.TemporaryDirectory() as folder:
        script = [str(environment.python), str(HERE.parent / "tests" / "real" / "npu_rank.py")]
        rest = [str(RANKS), f"{folder}/store", "destroyed", str(K), str(CAPTURES)]
        ranks = [
            subprocess.Popen(
                [*script, str(rank), *rest],
                env=base(environment, folder, traced=traced),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for rank in range(RANKS)
        ]
        assert [rank.wait() for rank in ranks] == [0] * RANKS


def settings(environment: Environment) -> ProbeSettings:
    """Return those of one arm with vLLM, two layers."""
    own = ProbeSettings(
        workload="vllm",
        python=str(environment.python),
        arms=("as_configured",),
        budget_seconds=900,
    )
    return of_vllm(own, layers=2)


def vllm_start(environment: Environment, *, traced: bool) -> None:
    """Start the LLM that a probe starts, and end it."""
    own = settings(environment)
    spec = Spec(
        workload="vllm",
        arm="as_configured",
        devices=own.devices,
        collectives=own.collectives,
        shapes=own.shapes,
        rounds=0,
        kinds=own.kinds,
        buffer_mb=own.buffer_mb,
        deadline_seconds=own.budget_seconds,
    )
    with tempfile.TemporaryDirectory() as folder:
        environ = base(environment, folder, traced=traced)
        (Path(folder) / "capture_canary").symlink_to(Path(capture_canary.__file__).parent)
        subprocess.run(
            [str(environment.python), str(HERE / "ranks" / "vllm_start.py")],
            input=encode(spec),
            env={**environ, "PYTHONPATH": f"{folder}:{environ.get('PYTHONPATH', '')}"},
            check=True,
            capture_output=True,
            cwd="/",
        )


def vllm_arm(environment: Environment) -> None:
    """Run one arm of a probe, to its verdict."""
    with tempfile.TemporaryDirectory() as folder:
        plain = base(environment, folder, traced=False)
        probe = Probe(settings(environment), plain, emulated=True, observe=lambda _: None)
        report = probe.run()
    assert report.verdict == "degraded", report.reason


def interval(ratios: Sequence[float]) -> str:
    """Return the geometric mean with its 95 % interval."""
    logs = [math.log(ratio) for ratio in ratios]
    middle = statistics.fmean(logs)
    half = T_975[len(logs) - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
    low, high = math.exp(middle - half), math.exp(middle + half)
    return f"{math.exp(middle):.3f} ({low:.3f} to {high:.3f})"


def compare(name: str, kinds: dict[str, Callable[[], None]]) -> None:
    """Print a row for each kind but the first, beside the first."""
    turns = int(os.environ.get("TURNS", TURNS))
    found: dict[str, list[Cost]] = {kind: [] for kind in kinds}
    for turn in range(turns):
        order = list(kinds) if turn % 2 == 0 else list(reversed(kinds))
        for kind in order:
            found[kind].append(cost(kinds[kind]))
    first, *others = kinds
    for kind in others:
        pairs = list(zip(found[kind], found[first], strict=True))
        seconds = [
            statistics.median(one.seconds for one in found[which]) for which in (first, kind)
        ]
        print(
            f"| {name} | {kind} | {seconds[0]:.1f} | {seconds[1]:.1f} "
            f"| {interval([own.seconds / beside.seconds for own, beside in pairs])} "
            f"| {interval([own.cpu / beside.cpu for own, beside in pairs])} |",
            flush=True,
        )


def main(names: Sequence[str]) -> None:
    """Print a row a comparison."""
    print("| environment | what | bare start, s | with it, s | ratio of time | of processor time |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in names:
        own = environments.find(name)
        if name.startswith("vllm"):
            compare(
                name,
                {
                    "bare": partial(vllm_start, own, traced=False),
                    "with the tracer": partial(vllm_start, own, traced=True),
                    "an arm of the probe": partial(vllm_arm, own),
                },
            )
        else:
            compare(
                name,
                {
                    "bare": partial(torch_start, own, traced=False),
                    "with the tracer": partial(torch_start, own, traced=True),
                },
            )


if __name__ == "__main__":
    main(sys.argv[1:] or ["torch-2.13.0", "torch-2.9.0", "vllm-0.23.0"])
