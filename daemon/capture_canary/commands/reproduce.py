"""`capture-canary reproduce`: the fault as it was first described, by real vLLM: 100 rounds of 11 graphs."""

import argparse
import contextlib
import hashlib
import os
import re
import secrets
import shlex
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
from rich.console import Console

from capture_canary.commands import measuring
from capture_canary.exits import UNKNOWN, USAGE, exit_code
from capture_canary.lock import LockBusyError, LockUnusableError
from capture_canary.model import Report
from capture_canary.probe.measure import ProbeSettings
from capture_canary.probe.settings import VLLM_KINDS
from capture_canary.probe.vllm import modes, tiny
from capture_canary.reproduction import outcome, page, said, screen
from capture_canary.reproduction.events import Header
from capture_canary.reproduction.journal import Journal, JournalError, open_journal
from capture_canary.reproduction.measure import measure
from capture_canary.reproduction.outcome import Compared
from capture_canary.stack.cann import read_stack

NODE_RANKS, EMULATED_RANKS = 8, 2
STDOUT = Path("-")
_MOST_SIZES, _MOST_SIZE = 256, 4096
"""Bounds against typing errors: vLLM itself captures some 70 sizes up to 512."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    measuring.add_stack(parser)
    parser.add_argument(
        "--tp",
        type=measuring.positive,
        metavar="N",
        help=f"tensor-parallel ranks, an NPU each ({NODE_RANKS}; emulated {EMULATED_RANKS})",
    )
    measuring.add_model(parser)
    parser.add_argument(
        "--cudagraph-mode",
        choices=modes.MODES,
        default=modes.FULL,
        help="%(default)s; vllm-ascend 0.11 has no FULL, 0.10 and older only PIECEWISE",
    )
    parser.add_argument(
        "--rounds",
        type=measuring.positive,
        metavar="N",
        default=outcome.ROUNDS,
        help="(%(default)s)",
    )
    parser.add_argument(
        "--sizes",
        type=_sizes,
        metavar="N,N,…",
        default=outcome.SIZES,
        help=f"batch sizes, a graph each ({','.join(map(str, outcome.SIZES))})",
    )
    parser.add_argument(
        "--budget",
        type=measuring.seconds,
        metavar="SECONDS",
        default=7200.0,
        help="end after that (%(default)g)",
    )
    parser.add_argument(
        *("-o", "--output"),
        type=Path,
        metavar="FOLDER",
        default=Path("capture-canary-reproduction"),
        help="write the report there; what is measured is kept there, and gone on with (%(default)s)",
    )
    parser.add_argument(
        "--compare",
        metavar="IMAGE",
        action="append",
        default=[],
        help="the same in this image too, by Docker, behind the gate; may be repeated (docs/reproduce.md)",
    )
    parser.add_argument(
        "--image-python",
        metavar="PATH",
        default="python3",
        help="the Python of those images that has vLLM (%(default)s)",
    )
    parser.add_argument(
        "--image-mount",
        type=measuring.existing,
        metavar="PATH",
        action="append",
        default=[],
        help="what those images are given to read, at the same place, beside --model; may be repeated",
    )
    parser.add_argument(
        "--again", action="store_true", help="begin anew; what is there is put aside"
    )
    parser.add_argument(
        "--node", default=socket.gethostname(), help="name in the report (%(default)s)"
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write every capture, as `probe --json`; - writes to standard output",
    )
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="write the curves, as .png or .svg"
    )


def run(args: argparse.Namespace) -> int:
    """Reproduce; return the exit code of the verdict."""
    errors = Console(stderr=True)
    try:
        python, base = measuring.stack(args)
        header = _header(args, base, _settings(args, python, measuring.model(args)))
        measuring.check_plot(args.plot)
        if args.compare or not measuring.emulated(args):
            measuring.config(args)  # of no use to an emulated node that nobody shares
        journal = open_journal(args.output, header, again=args.again)
    except (measuring.UsageError, JournalError) as error:
        errors.print(f"{error}", style="red", markup=False)
        return USAGE
    with contextlib.closing(journal):
        return _reproduce(args, journal, base, errors)


def _reproduce(
    args: argparse.Namespace, journal: Journal, base: Mapping[str, str], errors: Console
) -> int:
    console = errors if args.json == STDOUT else Console()
    for line in said.resumed(journal):
        console.print(line, highlight=False, markup=False)
    try:
        with measuring.lock(args), screen.following(console, journal) as observe:
            measuring.end_in_good_order()
            found = measure(journal, base, budget_seconds=args.budget, observe=observe)
        compared = _compared(args, journal, base, console)
    except (LockBusyError, LockUnusableError) as error:
        errors.print(f"{error}", style="red", markup=False)
        return UNKNOWN
    except (SystemExit, KeyboardInterrupt):
        errors.print(f"stopped; the same command goes on from {args.output}", markup=False)
        raise
    screen.show(console, found, compared)
    command = shlex.join(["capture-canary", *sys.argv[1:]])
    for file in page.write(args.output, found, compared, node=args.node, command=command):
        console.print(f"wrote {file}", highlight=False, markup=False)
    _write_json(args.json, found.report)
    code = measuring.plot(found.report, args.plot, errors) or exit_code(found.report.verdict)
    return code or (UNKNOWN if any(one.report is None for one in compared) else 0)


def _compared(
    args: argparse.Namespace, journal: Journal, base: Mapping[str, str], console: Console
) -> list[Compared]:
    """Return what the same comes to in the other images, where there are any."""
    if not args.compare:
        return []
    from capture_canary.reproduction.images import Others  # noqa: PLC0415  # only where it was asked for

    def say(line: str) -> None:
        console.print(line, highlight=False, markup=False, soft_wrap=True)

    others = Others(
        journal.header,
        args.output,
        python=args.image_python,
        mounts=args.image_mount,
        budget_seconds=args.budget,
        say=say,
    )
    return others.compare(args.compare, measuring.config(args), base)


def _write_json(target: Path | None, report: Report) -> None:
    if target is None:
        return
    data = msgspec.json.format(msgspec.json.encode(report)) + b"\n"
    if target == STDOUT:
        sys.stdout.buffer.write(data)
    else:
        target.write_bytes(data)


def _header(args: argparse.Namespace, base: Mapping[str, str], settings: ProbeSettings) -> Header:
    home = base.get("ASCEND_HOME_PATH")
    stack = read_stack(Path(home)) if home else {}
    return Header(
        begun=time.time(),
        settings=settings,
        emulated=measuring.emulated(args),
        stack={name: fact.value for name, fact in stack.items() if fact.value},
        model=_digest(settings.model),
    )


def _digest(model: str | None) -> str | None:
    return hashlib.sha256(Path(model, "config.json").read_bytes()).hexdigest() if model else None


def _settings(args: argparse.Namespace, python: str, model: str | None) -> ProbeSettings:
    mode = os.environ.get("HCCL_OP_EXPANSION_MODE")
    ranks = args.tp or (EMULATED_RANKS if measuring.emulated(args) else NODE_RANKS)
    return ProbeSettings(
        workload="vllm",
        python=python,
        model=model,
        graph_mode=args.cudagraph_mode,
        devices=tuple(range(ranks)),
        collectives=tiny.collectives(measuring.layers(args)),
        rounds=args.rounds,
        shapes=args.sizes,
        kinds=VLLM_KINDS,
        arms=outcome.ARMS,
        mode=mode,
        mode_source="HCCL_OP_EXPANSION_MODE" if mode else "default of the SoC",
        seed=secrets.randbits(32),
        full=True,
    )


def _sizes(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    sizes = tuple(
        sorted({int(part) for part in parts if re.fullmatch(r"[0-9]{1,4}", part, re.ASCII)})
    )
    if (
        len(sizes) != len(parts)
        or len(sizes) > _MOST_SIZES
        or not 1 <= sizes[0] <= sizes[-1] <= _MOST_SIZE
    ):
        raise argparse.ArgumentTypeError(
            f"{text[:80]!r} is not a list of at most {_MOST_SIZES} different batch sizes up to {_MOST_SIZE}"
        )
    return sizes
