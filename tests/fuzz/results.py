"""What runs of the fuzzer came to, added up, and the table of docs/fuzzing.md."""

from collections import defaultdict
from pathlib import Path

import msgspec

from tests.fuzz.table import TARGETS

FILE = Path(__file__).parent / "results.json"
RUNS = "runs.jsonl"


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one target."""

    target: str
    date: str
    executions: int
    seconds: float
    peak_mb: int
    fault: str | None
    """Name of the input that was one, or how the process ended."""
    cores: int


class Sum(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of one target."""

    executions: int
    seconds: int
    peak_mb: int
    faults: int
    """Runs that ended with one."""
    date: str
    """Of the last run."""


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """Of all targets."""

    machine: str
    targets: dict[str, Sum]


def record(runs: Path) -> None:
    """Add up the runs."""
    by_target: defaultdict[str, list[Run]] = defaultdict(list)
    for line in runs.read_bytes().splitlines():
        run = msgspec.json.decode(line, type=Run)
        by_target[run.target].append(run)
    sums = {
        name: Sum(
            executions=sum(one.executions for one in found),
            seconds=round(sum(one.seconds for one in found)),
            peak_mb=max(one.peak_mb for one in found),
            faults=sum(one.fault is not None for one in found),
            date=max(one.date for one in found),
        )
        for name, found in sorted(by_target.items())
        if name in TARGETS
    }
    cores = max(one.cores for found in by_target.values() for one in found)
    made = Results(machine=f"{cores} cores", targets=sums)
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(made)) + b"\n")


def read() -> Results:
    """Return what was recorded."""
    return msgspec.json.decode(FILE.read_bytes(), type=Results)


def table() -> str:
    """Return the table of the page."""
    found = read()
    lines = [
        "| target | reads | executions | seconds | kept inputs | last run |",
        "| --- | --- | ---: | ---: | ---: | --- |",
    ]
    for name, one in found.targets.items():
        target = TARGETS[name]
        lines.append(
            f"| `{name}` | {target.reads} | {one.executions:,} | {one.seconds:,} | {len(target.kept())} | {one.date} |"
        )
    executions, seconds = (
        sum(getattr(one, field) for one in found.targets.values())
        for field in ("executions", "seconds")
    )
    lines.append(f"| all | on a machine of {found.machine} | {executions:,} | {seconds:,} | | |")
    return "\n".join(lines)
