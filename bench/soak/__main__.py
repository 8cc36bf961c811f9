"""Soaks a daemon in emulated months: `python -m bench.soak` takes an hour and a half; `--probes N` takes less.

A run that is interrupted keeps its figures: they are written after every hundred probes.
"""

import argparse
import os
import platform
import signal
import statistics
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
from bench.soak.faults import STACKS
from bench.soak.node import HungError, Node, Usage
from bench.soak.soak import Soak

EVERY = 100
WARM_UP = 0.1
"""Share of the run after which all that is bounded has been filled: at 4 probes a day, the 90 days of the history."""


def figures(soak: Soak, began: float, args: argparse.Namespace) -> dict[str, Any]:
    """Return everything that was found, as JSON takes it; `began` is when, by the monotonic clock."""
    warm = [one for number, one in soak.samples if number >= WARM_UP * args.probes]
    told = soak.node.told
    really = time.monotonic() - began
    return {
        "command": " ".join(["python", "-m", "bench.soak", *sys.argv[1:]]),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "seed": args.seed,
        "seconds": round(really),
        "probes": soak.probes,
        "probes_wanted": args.probes,
        "decisions": told.decisions,
        "emulated_days": round((told.monotonic - soak.begun) / 86_400, 1),
        "scheduled": soak.scheduled,
        "asked_for": soak.asked,
        "latched_off": soak.latched,
        "history_in_memory": soak.in_memory,
        "found": {f"{right} -> {said}": n for (right, said), n in sorted(soak.found.items())},
        "by_fault": {f"{fault}: {said}": n for (fault, said), n in sorted(soak.by_fault.items())},
        "wrong": soak.wrong,
        "broken": soak.broken,
        "growth": {name: growth([getattr(one, name) for one in warm]) for name in Usage._fields},
        "most": {name: max(getattr(one, name) for one in warm) for name in Usage._fields if warm},
        "samples": [[number, *one] for number, one in soak.samples],
    }


def growth(values: list[int]) -> float | None:
    """Return how much the last ninth of the values, by its median, is more than the first."""
    ninth = max(1, len(values) // 9)
    if len(values) < 2 * ninth:
        return None
    return float(statistics.median(values[-ninth:]) - statistics.median(values[:ninth]))


def soaked(args: argparse.Namespace, node: Node) -> bool:
    """Soak, writing figures now and then; whether all was as promised."""
    soak, began = Soak(node, seed=args.seed, faulty=args.faulty), time.monotonic()
    ending = False

    def end(_number: int, _frame: FrameType | None) -> None:
        nonlocal ending
        ending = True

    signal.signal(signal.SIGTERM, end)
    try:
        while soak.probes < args.probes and not ending:
            before = soak.probes
            try:
                soak.turn()
            except (AssertionError, OSError) as error:
                soak.broken.append(f"{type(error).__name__}: {error}")
            if soak.probes % args.every == 0 and soak.probes != before:
                soak.sample()
                keep(args.out, figures(soak, began, args))
        while node.told.decisions < args.decisions and not ending:
            soak.step(0.5)
    except HungError as error:
        soak.broken.append(f"hung: {error}")
    else:
        soak.sample()
    found = figures(soak, began, args)
    keep(args.out, found)
    show(found)
    return not soak.wrong and not soak.broken


def keep(path: Path, found: dict[str, Any]) -> None:
    """Write the figures whole or not at all, and say how far it is."""
    fresh = path.with_suffix(".new")
    fresh.parent.mkdir(parents=True, exist_ok=True)
    fresh.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1))
    fresh.replace(path)
    print(
        f"{found['seconds']} s: {found['probes']} probes, {found['decisions']} decisions, "
        f"{len(found['wrong'])} wrong, {len(found['broken'])} broken, resident {found['samples'][-1][1]} KB",
        file=sys.stderr,
        flush=True,
    )


def show(found: dict[str, Any]) -> None:
    """Print a row a figure."""
    print("| soak | found | wanted |\n| --- | --- | --- |")
    grown = {name: n for name, n in found["growth"].items() if name != "resident_kb"}
    rows = (
        ("schedule decisions", found["decisions"], "100,000"),
        ("probes", found["probes"], "10,000"),
        ("emulated days", found["emulated_days"], ""),
        ("wrong verdicts", len(found["wrong"]), "0"),
        ("other promises broken", len(found["broken"]), "0"),
        ("growth of resident memory, KB", found["growth"]["resident_kb"], "< 1,024"),
        *((f"growth of {name.replace('_', ' ')}", n, "0") for name, n in grown.items()),
    )
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")


def main() -> int:
    """Run; 1 where something was not as promised."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--probes", type=int, default=10_000)
    parser.add_argument("--decisions", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=20261201)
    parser.add_argument("--faulty", type=float, default=0.15, help="share of probes with a fault")
    parser.add_argument("--every", type=int, default=EVERY, help="probes between two looks")
    parser.add_argument("--out", type=Path, default=Path("build/soak.json"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        node = Node(Path(folder), emulate=STACKS[0].emulate)
        try:
            good = soaked(args, node)
        finally:
            with suppress(OSError):
                node.stop()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
