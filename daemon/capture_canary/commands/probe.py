"""`capture-canary probe`: measure once, show it, say what it means."""

import argparse
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import get_args

import msgspec
from rich.console import Console

from capture_canary import terminal
from capture_canary.commands import measuring, start_gate
from capture_canary.config import Config, ConfigError, find_config, load
from capture_canary.exits import USAGE, exit_code
from capture_canary.kubernetes.result import packed
from capture_canary.lock import INSTANCE, holder_pid
from capture_canary.model import ArmName
from capture_canary.probe.measure import Probe, ProbeSettings
from capture_canary.probe.settings import of_vllm
from capture_canary.probe.vllm import modes
from capture_canary.probe.workloads import PATIENCE, WORKLOADS
from capture_canary.service.settings import configured_mode
from capture_canary.stack.devices import device_nodes
from capture_canary.stack.processes import Finder
from capture_canary.stack.servers import Server, about_them

DEFAULTS = ProbeSettings()
_MAX_RANKS = 64
"""As `probe.ranks` allows: each is a process."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    measuring.add_stack(parser)
    parser.add_argument(
        "--workload",
        choices=WORKLOADS,
        default=DEFAULTS.workload,
        help="who captures: acl needs CANN alone, torch needs torch-npu (%(default)s)",
    )
    measuring.add_model(parser)
    parser.add_argument(
        "--cudagraph-mode",
        choices=modes.MODES,
        help="vllm: what it captures (the first of these that its version has)",
    )
    parser.add_argument(
        "--at-start",
        action="store_true",
        help="vllm: do not have it capture again, but many sizes once, when it starts; needs no private name of vLLM",
    )
    parser.add_argument(
        "--profiler",
        type=Path,
        metavar="DIR",
        help="torch: have torch-npu's profiler write a profile of rank 0 there, for `capture-canary profile`",
    )
    npus = parser.add_mutually_exclusive_group()
    npus.add_argument("--ranks", type=_ranks, metavar="N", help="use NPUs 0 to N-1 (2)")
    npus.add_argument("--devices", type=_numbers, metavar="N,N,…", help="use these NPUs")
    parser.add_argument(
        "--collectives",
        type=measuring.positive,
        metavar="K",
        default=DEFAULTS.collectives,
        help="collectives a graph: the growth goes with its square (%(default)s)",
    )
    parser.add_argument(
        "--rounds",
        type=measuring.positive,
        metavar="N",
        default=DEFAULTS.rounds,
        help=f"how often each of {len(DEFAULTS.shapes)} shapes is captured (%(default)s)",
    )
    parser.add_argument(
        "--arm",
        action="append",
        choices=get_args(ArmName),
        help="run this arm, may be repeated (as_configured, then what attributes its result)",
    )
    parser.add_argument(
        "--full", action="store_true", help="capture on where the verdict is known already"
    )
    parser.add_argument(
        "--no-preload",
        action="store_false",
        dest="preload",
        help="count no copies: time alone decides, in more captures (docs/statistics.md)",
    )
    parser.add_argument(
        "--budget",
        type=measuring.seconds,
        metavar="SECONDS",
        help="end after that, whatever happens "
        f"({', '.join(f'{seconds:g} with {name}' for name, seconds in PATIENCE.items())})",
    )
    parser.add_argument(
        "--now",
        action="store_true",
        help="have the running daemon probe at once, behind its gate; with --state-dir if that is not the default",
    )
    parser.add_argument("--state-dir", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--result",
        type=Path,
        metavar="FILE",
        help="write the report without its series, at most 4096 bytes, and end with 0 whatever the verdict: for a Job",
    )
    start_gate.configure(parser)
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="write the curves, as .png or .svg"
    )


def run(args: argparse.Namespace) -> int:
    """Probe; return the exit code of the verdict."""
    errors = Console(stderr=True)
    if args.now:
        return _now(args.state_dir, errors)
    if args.gate:
        return start_gate.run(args)
    try:
        python, base = measuring.stack(args)
        model = measuring.model(args)
        measuring.check_plot(args.plot)
        _check_workload(args)
    except measuring.UsageError as error:
        errors.print(f"{error}", style="red", markup=False)
        return USAGE
    servers = () if measuring.emulated(args) else _servers()
    settings = _settings(args, python, model, servers)
    with terminal.progress(errors) as observe:
        measuring.end_in_good_order()
        begun = time.monotonic()
        report = Probe(settings, base, emulated=measuring.emulated(args), observe=observe).run()
    if args.result:
        took = time.monotonic() - begun
        args.result.write_bytes(packed(report, took=took, devices=len(settings.devices)))
    about, why = about_them(report.stack, servers)
    if about is False:
        errors.print(f"Note: {why}.", markup=False)
    if args.json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    else:
        terminal.show(Console(), report)
    code = 0 if args.result else exit_code(report.verdict)
    return measuring.plot(report, args.plot, errors) or code


def _check_workload(args: argparse.Namespace) -> None:
    if args.profiler and args.workload != "torch":
        raise measuring.UsageError("--profiler: only the workload torch has torch-npu's profiler")
    if args.at_start and not args.preload:
        raise measuring.UsageError(
            "--at-start: only the tracer sees it, which --no-preload leaves out"
        )


def _now(state_dir: Path | None, errors: Console) -> int:
    """Ask the running daemon; what it finds is on its page, in its log and its history."""
    flags = {"state_dir": str(state_dir)} if state_dir else {}
    try:
        folder = load(find_config(None, os.environ), os.environ, flags).config.state_dir
    except ConfigError as error:
        errors.print(f"--now: {error}", markup=False)
        return USAGE
    pid = holder_pid(folder / INSTANCE)
    if pid is None:
        errors.print(f"--now: no daemon runs on {folder}", markup=False)
        return USAGE
    os.kill(pid, signal.SIGUSR1)
    errors.print(
        f"--now: asked the daemon (pid {pid}); `capture-canary history` shows what it finds"
    )
    return 0


def _servers() -> tuple[Server, ...]:
    """What serves on this node, as far as whoever types the command may see it."""
    return Finder(inspect=True).look(nodes=device_nodes(), soc=None).servers


def _settings(
    args: argparse.Namespace, python: str, model: str | None, servers: tuple[Server, ...]
) -> ProbeSettings:
    mode, source = configured_mode(Config(), os.environ, servers)
    settings = ProbeSettings(
        workload=args.workload,
        python=python,
        devices=args.devices or tuple(range(args.ranks or len(DEFAULTS.devices))),
        collectives=args.collectives,
        rounds=args.rounds,
        arms=tuple(args.arm) if args.arm else None,
        mode=mode,
        mode_source=source,
        budget_seconds=args.budget or PATIENCE[args.workload],
        # A profiler that was asked to stop in the middle would have no time to write.
        full=args.full or args.profiler is not None,
        profile=str(args.profiler.absolute()) if args.profiler else None,
        preload=args.preload,
    )
    if args.workload != "vllm":
        return settings
    return of_vllm(
        settings,
        layers=measuring.layers(args),
        model=model,
        graph_mode=args.cudagraph_mode,
        at_start=args.at_start,
    )


def _ranks(text: str) -> int:
    return measuring.bounded(text, _MAX_RANKS)


def _numbers(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    numbers = tuple(int(part) for part in parts if re.fullmatch(r"[0-9]{1,4}", part, re.ASCII))
    if len(numbers) != len(parts) or len(set(numbers)) != len(numbers) or len(numbers) > _MAX_RANKS:
        raise argparse.ArgumentTypeError(
            f"{text[:80]!r} is not a list of at most {_MAX_RANKS} different NPUs, such as 0,1"
        )
    return numbers
