"""`capture-canary probe --gate`: before a server starts, a probe with its image and NPUs; lets it start when in doubt.

The probe is a process of its own with a deadline: whatever becomes of it, the server is not kept waiting beyond that.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from capture_canary import foreign
from capture_canary.gate.remembered import Remembered, Verdict, key
from capture_canary.kubernetes.exchange import Result
from capture_canary.model import Cause
from capture_canary.stack.cann import read_stack
from capture_canary.stack.command import Command, CommandError

LONGEST: Final = 60.0
"""Seconds that the gate may keep a server waiting."""
_SPARE = 5.0
"""Of them, for a probe that has reached its budget to end in good order."""
_MAX_OUTPUT = 1 << 20
BY_COPIES: Final[frozenset[Cause]] = frozenset(
    ("aicpu_resource_list", "mode_not_effective", "regression", "copies_unattributed")
)
"""What counted copies prove; nothing else may keep a server from starting."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument(
        "--gate",
        nargs="?",
        choices=("warn", "block"),
        const="warn",
        help="before a server starts: end with 0 within 60 s whatever happens; `block`: with 1 where copies prove the "
        "fault (docs/deployment.md)",
    )


def run(args: argparse.Namespace) -> int:
    """Return 0: start; 1: copies prove the fault, and `block` was asked for."""
    try:
        verdict, known = _verdict(args)
    except Exception as error:  # noqa: BLE001  # a server must not wait for our faults
        _say(f"unknown: {error}; the server starts")
        return 0
    proven = verdict.verdict == "degraded" and verdict.cause in BY_COPIES
    blocks = proven and args.gate == "block"
    _say(f"{verdict.verdict}{known}: {verdict.reason}" + ("" if blocks else "; the server starts"))
    return int(blocks)


def _verdict(args: argparse.Namespace) -> tuple[Verdict, str]:
    """The verdict, and whether it was known before."""
    memory = Remembered.of(os.environ)
    name, why_not = _key(args, os.environ)
    if memory and name and (before := memory.get(name)):
        return before, " (known since an earlier start on this node)"
    result = _probe(args)
    report = result.report
    found = Verdict(verdict=report.verdict, cause=report.cause, reason=report.reason)
    if memory is None or report.verdict == "unknown":
        return found, ""
    if name is None:
        return found, f" (not remembered: {why_not})"
    memory.put(name, found)
    return found, ""


def _key(args: argparse.Namespace, environ: Mapping[str, str]) -> tuple[str | None, str]:
    """What a verdict is remembered by; None, and why, where that is not known."""
    home = environ.get("ASCEND_HOME_PATH")
    driver = read_stack(Path(home)).get("driver") if home else None
    if args.emulate is not None:
        return key(environ, driver=f"emulated {args.emulate}")
    return key(environ, driver=driver.value if driver else None)


def _probe(args: argparse.Namespace) -> Result:
    budget = min(args.budget or LONGEST, LONGEST)
    with tempfile.TemporaryDirectory(prefix="capture-canary-gate-") as folder:
        path = Path(folder) / "result.json"
        argv = [sys.executable, "-m", "capture_canary.cli", "probe", f"--result={path}"]
        argv += [f"--budget={max(1.0, budget - _SPARE):g}", f"--workload={args.workload}"]
        if args.emulate is not None:
            argv.append(f"--emulate={args.emulate}")
        if args.devices:
            argv.append(f"--devices={','.join(map(str, args.devices))}")
        elif args.ranks:
            argv.append(f"--ranks={args.ranks}")
        code, output = Command(argv, deadline=budget, limit=_MAX_OUTPUT).run()
        try:
            return foreign.decode(path.read_bytes(), Result)
        except (OSError, ValueError) as error:
            last = output.decode("utf-8", "replace").strip().rpartition("\n")[2][:200]
            raise CommandError(f"the probe ended with {code}: {last or error}") from error


def _say(what: str) -> None:
    sys.stderr.write(f"capture-canary gate: {what}\n")
