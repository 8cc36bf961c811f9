"""`capture-canary reproduce`: the fault as it was first described, by real vLLM: 100 rounds of 11 graphs."""

import argparse
import os
from pathlib import Path

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table

from capture_canary import terminal
from capture_canary.commands import measuring
from capture_canary.exits import USAGE, exit_code
from capture_canary.model import Report
from capture_canary.probe import reproduction
from capture_canary.probe.measure import ArmStarted, Probe, ProbeSettings
from capture_canary.probe.messages import Captured, Record
from capture_canary.probe.settings import VLLM_KINDS
from capture_canary.probe.vllm import tiny
from capture_canary.trend.line import Line

NODE_RANKS, EMULATED_RANKS = 8, 2
GRAPH_MODES = ("FULL", "FULL_DECODE_ONLY", "PIECEWISE")


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
        choices=GRAPH_MODES,
        default=GRAPH_MODES[0],
        help="%(default)s; vllm-ascend 0.11 has no FULL, 0.10 and older only PIECEWISE",
    )
    parser.add_argument(
        "--rounds",
        type=measuring.positive,
        metavar="N",
        default=reproduction.ROUNDS,
        help="(%(default)s)",
    )
    parser.add_argument(
        "--sizes",
        type=_sizes,
        metavar="N,N,…",
        default=reproduction.SIZES,
        help=f"batch sizes, a graph each ({','.join(map(str, reproduction.SIZES))})",
    )
    parser.add_argument(
        "--budget",
        type=measuring.seconds,
        metavar="SECONDS",
        default=7200.0,
        help="end after that (%(default)g)",
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write every capture, as `probe --json`"
    )
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="write the curves, as .png or .svg"
    )


def run(args: argparse.Namespace) -> int:
    """Reproduce; return the exit code of the verdict."""
    errors, console = Console(stderr=True), Console()
    try:
        python, base = measuring.stack(args)
        model = measuring.model(args)
        measuring.check_plot(args.plot)
    except measuring.UsageError as error:
        errors.print(f"{error}", style="red", markup=False)
        return USAGE
    emulated = measuring.emulated(args)
    settings = _settings(args, python, model, emulated=emulated)
    follow = _Lines(console, settings)
    report = Probe(settings, base, emulated=emulated, observe=follow).run()
    _show(console, report)
    if args.json:
        args.json.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    return measuring.plot(report, args.plot, errors) or exit_code(report.verdict)


def _settings(
    args: argparse.Namespace, python: str, model: str | None, *, emulated: bool
) -> ProbeSettings:
    mode = os.environ.get("HCCL_OP_EXPANSION_MODE")
    ranks = args.tp or (EMULATED_RANKS if emulated else NODE_RANKS)
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
        arms=reproduction.ARMS,
        mode=mode,
        mode_source="HCCL_OP_EXPANSION_MODE" if mode else "default of the SoC",
        budget_seconds=args.budget,
        full=True,
    )


class _Lines:
    """Prints each capture of rank 0 as it comes, with how much of its arm is done."""

    def __init__(self, console: Console, settings: ProbeSettings) -> None:
        self._console = console
        self._total = settings.rounds * len(settings.shapes)
        self._made = 0

    def __call__(self, event: ArmStarted | Record) -> None:
        if isinstance(event, ArmStarted):
            self._made = 0
            arm = terminal.ARMS[event.arm]
            self._console.print(f"{arm}: starting vLLM", highlight=False)
        elif isinstance(event, Captured) and event.rank == 0:
            self._made += 1
            one = event.capture
            copies = "?" if one.h2d_copies is None else f"{one.h2d_copies:,}"
            self._console.print(
                f"{self._made / self._total:4.0%} round {one.round + 1:3} size {one.shape:3}: "
                f"{one.seconds * 1e3:8.2f} ms, {copies} H2D copies",
                highlight=False,
            )


def _show(console: Console, report: Report) -> None:
    for outcome in reproduction.outcomes(report):
        arm = terminal.ARMS[outcome.series.arm]
        table = Table(
            title=f"{arm}, rank {outcome.series.rank}", box=box.SIMPLE_HEAD, title_justify="left"
        )
        for heading in (
            "round",
            "graphs",
            "ms a graph",
            "H2D copies a graph",
            "of the time in copies",
        ):
            table.add_column(heading, justify="right")
        for one in outcome.rounds:
            table.add_row(
                str(one.number),
                str(one.captures),
                f"{one.seconds / one.captures * 1e3:.2f}",
                "?" if one.copies is None else f"{one.copies / one.captures:,.0f}",
                "?" if one.share is None else f"{one.share:.1%}",
            )
        console.print(table)
        console.print(f"  copies: {_line(outcome.copies, 1, '')}", highlight=False)
        console.print(f"  time:   {_line(outcome.seconds, 1e3, ' ms')}\n", highlight=False)
    terminal.show(console, report)


def _line(found: Line | None, scale: float, unit: str) -> str:
    if found is None:
        return "too few captures for a line"
    straight = "" if found.r2 is None else f", R² {found.r2:.4f}"
    return (
        f"{found.slope * scale:+.4g}{unit} with each further capture "
        f"(95 %: {found.lower * scale:.4g} to {found.upper * scale:.4g}){straight}, over {found.n} captures"
    )


def _sizes(text: str) -> tuple[int, ...]:
    sizes = tuple(sorted({int(part) for part in text.split(",")}))
    if not sizes or not 1 <= sizes[0] <= sizes[-1] <= 4096:  # noqa: PLR2004  # a bound against typing errors
        raise argparse.ArgumentTypeError(f"{text} is not a list of batch sizes up to 4096")
    return sizes
