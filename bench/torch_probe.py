"""What an arm of the torch probe costs beside importing torch-npu and initialising HCCL alone, emulated CANN."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from capture_canary import emulate, environments
from capture_canary.environments import Environment
from capture_canary.probe.measure import Probe, ProbeSettings

RUNS = 5
RANKS = 2
PORTS = {f"HCCL_{side}_SOCKET_PORT_RANGE": "auto" for side in ("HOST", "NPU")}


def alone(environment: Environment, base: dict[str, str]) -> float:
    """Return the seconds of ranks that do nothing but start."""
    script = [str(environment.python), str(Path(__file__).with_name("ranks") / "torch_init.py")]
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            subprocess.Popen([*script, str(rank), str(RANKS), f"{folder}/store"], env=base | PORTS)
            for rank in range(RANKS)
        ]
        assert [rank.wait() for rank in ranks] == [0] * RANKS
    return time.monotonic() - begin


def arm(environment: Environment, base: dict[str, str]) -> float:
    """Return the seconds of a probe of one arm, to its verdict."""
    settings = ProbeSettings(
        workload="torch",
        python=str(environment.python),
        arms=("as_configured",),
        budget_seconds=300,
    )
    begin = time.monotonic()
    report = Probe(settings, base, emulated=True, observe=lambda _: None).run()
    seconds = time.monotonic() - begin
    assert report.verdict == "degraded", report.reason
    return seconds


def main(names: list[str]) -> None:
    """Print a row an environment; both kinds of run take turns."""
    print("| environment | start alone, s (median) | one arm, s (median) | ratio |")
    print("| --- | --- | --- | --- |")
    for name in names:
        environment = environments.find(name)
        variables = environment.variables(emulate.parse("cann=8.5.0,soc=a3"), os.environ)
        base = {**os.environ, **variables}
        pairs = [(alone(environment, base), arm(environment, base)) for _ in range(RUNS)]
        started, armed = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"| {name} | {started:.1f} | {armed:.1f} | {armed / started:.2f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or ["torch-2.13.0", "torch-2.9.0"])
