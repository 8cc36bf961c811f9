"""What a probe costs: start to verdict with both arms, and the peak memory of a rank, on the emulated CANN."""

import os
import re
import statistics
import time
from pathlib import Path

from capture_canary.model import Report
from capture_canary.probe.base import base_environment
from capture_canary.probe.measure import ArmStarted, Event, Probe, ProbeSettings
from capture_canary.probe.messages import Started

RUNS = 10


def peak_mb(pid: int) -> float:
    """Return the peak resident memory of a process, MB (VmHWM of proc(5)); 0 once it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found.group(1)) / 1024 if found else 0.0


def probe(emulate: str) -> tuple[Report, float, float]:
    """Return a probe's report, its seconds, and the greatest peak of its ranks in MB."""
    pids: set[int] = set()
    peaks = [0.0]

    def observe(event: Event) -> None:
        if isinstance(event, ArmStarted):
            pids.clear()
        elif isinstance(event, Started):
            pids.add(event.pid)
        peaks.extend(peak_mb(pid) for pid in pids)

    begin = time.monotonic()
    base = base_environment(os.environ, emulate)
    report = Probe(ProbeSettings(), base, emulated=True, observe=observe).run()
    return report, time.monotonic() - begin, max(peaks)


def main() -> None:
    """Print a row a stack: verdict, seconds (median of the runs), peak."""
    print(
        "| emulated stack | verdict | arms | start to verdict, s (median, max) | peak of a rank, MB |"
    )
    print("| --- | --- | --- | --- | --- |")
    for emulate in ("cann=8.5.0,soc=a3", "cann=9.0.0,soc=a3", "cann=9.1.0,soc=a3"):
        runs = [probe(emulate) for _ in range(RUNS)]
        report = runs[0][0]
        seconds = [run[1] for run in runs]
        arms = ", ".join(dict.fromkeys(series.arm for series in report.series))
        verdict = f"{report.verdict} {report.cause or ''}".strip()
        print(
            f"| {emulate} | {verdict} | {arms} | {statistics.median(seconds):.2f}, {max(seconds):.2f} "
            f"| {max(run[2] for run in runs):.1f} |"
        )


if __name__ == "__main__":
    main()
