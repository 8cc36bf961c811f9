"""`capture-canary history`: what was judged, changed and skipped, newest first."""

import argparse
import sqlite3
import sys
from collections.abc import Sequence

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from capture_canary.commands import past
from capture_canary.model import VerdictName
from capture_canary.report import words
from capture_canary.report.past import Past, read
from capture_canary.store import Change, Event, Probe, Skip, Stacks

Shown = Probe | Skip | Stacks | Event
Row = Shown | Change
_KINDS = {Probe: "probe", Skip: "skip", Change: "change", Stacks: "stacks", Event: "event"}
_COLOURS: dict[VerdictName, str] = {
    "healthy": "green",
    "mitigated": "cyan",
    "degraded": "red",
    "unknown": "yellow",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    past.options(parser)
    parser.add_argument(
        "--limit", type=past.positive, default=30, metavar="N", help="at most so many (30)"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="one JSON object a line, with every kind of row and `kind` saying which",
    )


def run(args: argparse.Namespace) -> int:
    """Print the history; return an exit code."""
    return past.with_history(args.state_dir, lambda connection: _print(connection, args))


def _print(connection: sqlite3.Connection, args: argparse.Namespace) -> int:
    found = read(connection, since=args.since, limit=args.limit, whole=False)
    if args.json:
        every: list[Row] = [*found.probes, *found.changes, *found.skips]
        every += [*found.stacks, *found.events]
        for row in sorted(every, key=_at, reverse=True)[: args.limit]:
            fields = {"kind": _KINDS[type(row)], **msgspec.to_builtins(row)}
            fields.pop("report", None)
            sys.stdout.buffer.write(msgspec.json.encode(fields) + b"\n")
        return 0
    # A change of verdict is seen in the table by the probe that made it.
    shown: list[Shown] = [*found.probes, *found.skips, *found.stacks, *found.events]
    rows = sorted(shown, key=_at, reverse=True)[: args.limit]
    console = Console()
    if found.emulated:
        console.print("EMULATED: this says nothing of any real NPU.", style="bold magenta")
    console.print(_table(rows, found) if rows else "Nothing is remembered of this time.")
    return 0


def _at(row: Row) -> float:
    return row.last if isinstance(row, Skip) else row.at


def _table(rows: Sequence[Shown], found: Past) -> Table:
    table = Table(expand=False)
    table.add_column("when (UTC)", no_wrap=True)
    table.add_column("what", no_wrap=True)
    table.add_column("copies", justify="right", no_wrap=True)
    table.add_column("ms", justify="right", no_wrap=True)
    table.add_column("where and why", overflow="fold")
    for row in rows:
        table.add_row(words.moment(_at(row)).removesuffix(" UTC"), *_cells(row, found))
    table.caption = "copies, ms: how much more each further capture makes and takes"
    return table


def _cells(row: Shown, found: Past) -> tuple[Text, ...]:
    if isinstance(row, Probe):
        where = words.plain(words.stack(found.stack(row.stack), row.stack), 80)
        cause = f"{row.cause}: " if row.cause else ""
        return (
            Text(row.verdict, style=_COLOURS[row.verdict]),
            Text(words.amount(row.copies)),
            Text(words.amount(row.seconds, 1e3)),
            Text.assemble(
                (f"{where} ({row.evidence})\n", "dim"), f"{cause}{words.plain(row.reason)}"
            ),
        )
    if isinstance(row, Skip):
        times = f"{row.count} skips" if row.count > 1 else "skip"
        return _note(times, f"{row.reason}: {row.detail}" if row.detail else row.reason)
    if isinstance(row, Stacks):
        return _note("new stack", _change_of(row, found.stacks))
    return _note(row.kind, row.detail)


def _change_of(row: Stacks, stacks: list[Stacks]) -> str:
    older = next((one for one in stacks if one.id < row.id), None)
    if older is None:
        return ", ".join(words.stack(one) for one in row.stacks.values()) or "nothing found"
    return words.difference(older.stacks, row.stacks)


def _note(what: str, why: str) -> tuple[Text, ...]:
    dim = "dim"
    return Text(words.plain(what, 14), dim), Text(), Text(), Text(words.plain(why), dim)
