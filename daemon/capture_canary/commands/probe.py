"""`capture-canary probe`: measure once, show it, say what it means."""

import argparse
import math
import os
import re
import shutil
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn, get_args

import msgspec
from rich.console import Console

from capture_canary import emulate, environments, terminal
from capture_canary.config import Config, ConfigError, find_config, load
from capture_canary.emulate import EmulationError
from capture_canary.exits import USAGE, exit_code
from capture_canary.lock import INSTANCE, holder_pid
from capture_canary.model import ArmName, Report
from capture_canary.probe.base import base_environment
from capture_canary.probe.measure import Probe, ProbeSettings
from capture_canary.probe.settings import of_vllm
from capture_canary.probe.vllm import tiny
from capture_canary.probe.workloads import PATIENCE, WORKLOADS
from capture_canary.service.settings import configured_mode
from capture_canary.stack.devices import device_nodes
from capture_canary.stack.processes import Finder
from capture_canary.stack.servers import Server, about_them

DEFAULTS = ProbeSettings()
_MAX_RANKS = 64
"""As `probe.ranks` allows: each is a process."""
_SIGNALLED = 128
"""A shell's exit code of what a signal ended, less its number."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_stack(parser)
    parser.add_argument(
        "--workload",
        choices=WORKLOADS,
        default=DEFAULTS.workload,
        help="who captures: acl needs CANN alone, torch needs torch-npu (%(default)s)",
    )
    add_model(parser)
    npus = parser.add_mutually_exclusive_group()
    npus.add_argument("--ranks", type=_ranks, metavar="N", help="use NPUs 0 to N-1 (2)")
    npus.add_argument("--devices", type=_numbers, metavar="N,N,…", help="use these NPUs")
    parser.add_argument(
        "--collectives",
        type=positive,
        metavar="K",
        default=DEFAULTS.collectives,
        help="collectives a graph: the growth goes with its square (%(default)s)",
    )
    parser.add_argument(
        "--rounds",
        type=positive,
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
        type=_seconds,
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
        "--plot", type=Path, metavar="FILE", help="write the curves, as .png or .svg"
    )


def add_stack(parser: argparse.ArgumentParser) -> None:
    """Add the options that say on which CANN and with which Python."""
    parser.add_argument(
        "--emulate",
        metavar="KEY=VALUE,…",
        nargs="?",
        const="",
        default=os.environ.get("CAPTURE_CANARY_EMULATE"),
        help="run on the emulated CANN, e.g. cann=8.5.0,soc=a3 (docs/emulation.md)",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--python",
        metavar="PATH",
        default=DEFAULTS.python,
        help="the Python that has the torch-npu to probe, and msgspec (this one)",
    )
    which.add_argument(
        "--env", metavar="NAME", help="an environment (docs/environments.md), on the emulated CANN"
    )


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the options of what vLLM captures."""
    parser.add_argument(
        "--model", metavar="DIR", help="vllm: a model's folder (a tiny one of --layers layers)"
    )
    parser.add_argument(
        "--layers",
        type=positive,
        metavar="N",
        help=f"vllm: layers of the tiny model, two collectives each ({tiny.LAYERS}; emulated {tiny.EMULATED_LAYERS})",
    )


def run(args: argparse.Namespace) -> int:
    """Probe; return the exit code of the verdict."""
    errors = Console(stderr=True)
    if args.now:
        return _now(args.state_dir, errors)
    try:
        python, base = stack(args)
    except (EmulationError, OSError) as error:
        errors.print(f"--emulate: {error}", style="red", markup=False)
        return USAGE
    except (environments.RecipeError, environments.CreateError) as error:
        errors.print(f"--env: {error}", style="red", markup=False)
        return USAGE
    if shutil.which(python) is None:
        errors.print(f"--python: {python} cannot be run", style="red", markup=False)
        return USAGE
    servers = () if emulated(args) else _servers()
    settings = _settings(args, python, servers)
    if args.plot and args.plot.suffix not in {".png", ".svg"}:
        errors.print(f"--plot: {args.plot} ends neither in .png nor in .svg", markup=False)
        return USAGE
    with terminal.progress(errors) as observe:
        _end_in_good_order()
        report = Probe(settings, base, emulated=emulated(args), observe=observe).run()
    about, why = about_them(report.stack, servers)
    if about is False:
        errors.print(f"Note: {why}.", markup=False)
    if args.json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    else:
        terminal.show(Console(), report)
    return plot(report, args.plot, errors) or exit_code(report.verdict)


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


def stack(args: argparse.Namespace) -> tuple[str, dict[str, str]]:
    """Return the Python to probe with, and the environment that names its CANN."""
    if args.env is None:
        return args.python, base_environment(os.environ, args.emulate)
    environment = environments.find(args.env)
    variables = environment.variables(emulate.parse(args.emulate or ""), os.environ)
    return str(environment.python), {**os.environ, **variables}


def emulated(args: argparse.Namespace) -> bool:
    """Return whether all this is on the emulated CANN."""
    return args.emulate is not None or args.env is not None


def _servers() -> tuple[Server, ...]:
    """What serves on this node, as far as whoever types the command may see it."""
    return Finder(inspect=True).look(nodes=device_nodes(), soc=None).servers


def _settings(args: argparse.Namespace, python: str, servers: tuple[Server, ...]) -> ProbeSettings:
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
        full=args.full,
        preload=args.preload,
    )
    if args.workload != "vllm":
        return settings
    return of_vllm(settings, layers=layers(args), model=args.model)


def layers(args: argparse.Namespace) -> int:
    """Return the layers of the tiny model: more show more, and an emulated run copies real bytes."""
    return int(args.layers or (tiny.EMULATED_LAYERS if emulated(args) else tiny.LAYERS))


def plot(report: Report, path: Path | None, errors: Console) -> int:
    """Write the curves where that was asked for; return USAGE where it cannot be."""
    if path is None:
        return 0
    try:
        from capture_canary.report import picture  # noqa: PLC0415  # needs the extra `report`
    except ImportError as error:
        errors.print(f"--plot needs matplotlib: pip install 'capture-canary[report]' ({error})")
        return USAGE
    try:
        picture.save_report(report, path)
    except OSError as error:
        errors.print(f"--plot: {error}", markup=False)
        return USAGE
    return 0


def _end_in_good_order() -> None:
    """Have the first signal end the probe, its processes and its files; a second one must not interrupt that."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        for one in numbers:
            signal.signal(one, signal.SIG_IGN)
        raise SystemExit(_SIGNALLED + number)

    for number in numbers:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, end)


def _bounded(text: str, most: int) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text, re.ASCII) or not 1 <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 1 and {most}")
    return int(text)


def positive(text: str) -> int:
    """Return a number between 1 and 10000."""
    return _bounded(text, 10_000)


def _ranks(text: str) -> int:
    return _bounded(text, _MAX_RANKS)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 86_400:  # noqa: PLR2004  # a day
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds up to a day")
    return value


def _numbers(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    numbers = tuple(int(part) for part in parts if re.fullmatch(r"[0-9]{1,4}", part, re.ASCII))
    if len(numbers) != len(parts) or len(set(numbers)) != len(numbers) or len(numbers) > _MAX_RANKS:
        raise argparse.ArgumentTypeError(
            f"{text[:80]!r} is not a list of at most {_MAX_RANKS} different NPUs, such as 0,1"
        )
    return numbers
