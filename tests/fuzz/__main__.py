"""Fuzzes targets one after the other and counts: `python -m tests.fuzz [TARGET…] [--seconds N] [--runs N]`.

Each run adds a line to build/fuzz/runs.jsonl; `--record` adds them up in tests/fuzz/results.json.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from tests.fuzz import results
from tests.fuzz.results import Run
from tests.fuzz.table import TARGETS
from tests.fuzz.target import Target, memory

ROOT = Path(__file__).parents[2]
HANG = 10
"""Seconds for one input: a thousand times what a slow one takes."""
MEMORY = 1024
"""MiB that a process of one target may have."""
_EXECUTED = re.compile(r"^stat::number_of_executed_units:\s*(\d+)", re.MULTILINE)
_PEAK = re.compile(r"^stat::peak_rss_mb:\s*(\d+)", re.MULTILINE)


def main(argv: list[str]) -> int:
    """Fuzz; 1 where a fault was found."""
    args = _parser().parse_args(argv)
    if args.record:
        results.record(args.corpus / results.RUNS)
        return 0
    faults = 0
    for name in args.targets or sorted(TARGETS):
        run = fuzz(TARGETS[name], args.corpus, seconds=args.seconds, runs=args.runs)
        faults += bool(run.fault)
        said = f"{name}: {run.executions:,} executions in {run.seconds:.0f} s of a core, {run.peak_mb} MiB"
        sys.stdout.write(f"{said}, {run.fault or 'no fault'}\n")
        sys.stdout.flush()
    return 1 if faults else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", choices=[[], *TARGETS], metavar="TARGET", help="all")
    parser.add_argument("--seconds", type=int, default=60, help="for each target (60)")
    parser.add_argument("--runs", type=int, default=-1, help="executions of each target (no bound)")
    parser.add_argument(
        "--corpus", type=Path, default=ROOT / "build" / "fuzz", metavar="DIR", help="build/fuzz"
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help=f"add up the runs in {results.FILE.name}, fuzz nothing",
    )
    return parser


def fuzz(target: Target, folder: Path, *, seconds: int, runs: int) -> Run:
    """Fuzz one target from its seeds, its kept crashes and its corpus on, until a fault or the end."""
    corpus, seeds = folder / target.name, folder / "seeds" / target.name
    for one in (corpus, seeds):
        one.mkdir(parents=True, exist_ok=True)
    kept = [path.read_bytes() for path in target.kept()]
    for number, seed in enumerate([*target.seeds(), *kept]):
        (seeds / str(number)).write_bytes(seed)
    words = folder / f"{target.name}.dict"
    words.write_text("".join(f'"{_escaped(token)}"\n' for token in target.tokens or (b"\0",)))
    before = set(folder.glob(f"{target.name}-*"))
    options = [
        *(f"-max_total_time={seconds}", f"-runs={runs}", f"-max_len={target.longest}"),
        *(f"-timeout={HANG}", f"-rss_limit_mb={MEMORY}", f"-dict={words}"),
        *(f"-artifact_prefix={folder}/{target.name}-", "-print_final_stats=1", "-verbosity=1"),
    ]
    begin = _spent()
    with tempfile.TemporaryDirectory(prefix="capture-canary-fuzz-", dir=memory()) as temporary:
        argv = [sys.executable, "-m", "tests.fuzz.engine", target.run.__module__, target.name]
        ran = subprocess.run(
            [*argv, *options, str(corpus), str(seeds)],
            cwd=ROOT, env={**os.environ, "TMPDIR": temporary},
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", check=False,
        )  # fmt: skip
    said = ran.stderr
    found = sorted(set(folder.glob(f"{target.name}-*")) - before)
    fault = found[0].name if found else None
    if ran.returncode and not fault:
        fault = f"ended with {ran.returncode}"
    if fault:
        (folder / f"{target.name}.log").write_text(said)
    run = Run(
        target=target.name,
        date=datetime.now(timezone.utc).date().isoformat(),
        executions=_number(_EXECUTED, said),
        seconds=_spent() - begin,
        peak_mb=_number(_PEAK, said),
        fault=fault,
        cores=os.cpu_count() or 0,
    )
    with (folder / results.RUNS).open("ab") as file:
        file.write(msgspec.json.encode(run) + b"\n")
    return run


def _spent() -> float:
    """Seconds of a core that our children have taken: the machine may have more to do than this."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _escaped(token: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in token)


def _number(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.search(text)
    return int(found[1]) if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
