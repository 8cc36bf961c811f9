"""A reproduction in a terminal: each capture, how far it is, how long it takes; then rounds side by side, and lines."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table

from capture_canary import terminal
from capture_canary.model import ArmName
from capture_canary.probe.measure import ArmEnded, ArmStarted, Event, Observer
from capture_canary.probe.messages import Captured
from capture_canary.report import words
from capture_canary.reproduction import said
from capture_canary.reproduction.estimate import Estimate
from capture_canary.reproduction.journal import Journal
from capture_canary.reproduction.measure import Reproduction
from capture_canary.reproduction.outcome import Compared, Outcome, outcomes

EVERY = 20
"""Parts of an arm after each of which a log, where there is no bar, hears how long it still takes."""

_NUMBERS = range(3, 6)
"""Columns of `said.IMAGE_COLUMNS` that are numbers."""


@contextmanager
def following(console: Console, journal: Journal) -> Iterator[Observer]:
    """Follow what is measured: a bar where there is a terminal, else lines."""
    settings = journal.header.settings
    arms = len(settings.arms or ()) - len(journal.complete())
    if not console.is_terminal:
        yield _Follow(console.print, settings.rounds, arms, _log_of(console, settings.rounds))
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rounds, {task.fields[left]}"),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("starting", total=arms * settings.rounds, left="")
        yield _Follow(bar.console.print, settings.rounds, arms, _bar_of(bar, task))


Tell = Callable[[ArmName, int, int, str], None]
"""Of which arm so many rounds are made, how many in all, and what the estimate is."""


def _bar_of(bar: Progress, task: TaskID) -> Tell:
    def tell(arm: ArmName, _made: int, of_all: int, left: str) -> None:
        bar.update(task, description=terminal.ARMS[arm], completed=of_all, left=left)

    return tell


def _log_of(console: Console, rounds: int) -> Tell:
    step = max(1, rounds // EVERY)

    def tell(arm: ArmName, made: int, _of_all: int, left: str) -> None:
        if made and made % step == 0:
            after = f", {left}" if left else ""
            console.print(f"{terminal.ARMS[arm]}: round {made} of {rounds}{after}", highlight=False)

    return tell


class _Follow:
    """Prints each capture of rank 0 as it comes, and says how far its arm is."""

    def __init__(self, say: Callable[..., None], rounds: int, arms: int, tell: Tell) -> None:
        self._say = say
        self._tell = tell
        self._rounds = rounds
        self._estimate = Estimate(rounds=rounds, arms=arms)
        self._arm: ArmName = "as_configured"
        self._before = 0
        """Rounds of arms before this one."""
        self._made = 0

    def __call__(self, event: Event) -> None:
        now = time.monotonic()
        if isinstance(event, ArmStarted):
            self._arm, self._made = event.arm, 0
            self._estimate.arm(now)
            self._say(f"{terminal.ARMS[event.arm]}: starting vLLM", highlight=False)
            self._show("starting vLLM")
        elif isinstance(event, ArmEnded):
            self._before += self._rounds
            if event.failure:
                self._say(f"{terminal.ARMS[event.arm]}: {event.failure}", markup=False)
        elif isinstance(event, Captured) and event.rank == 0:
            self._round(event.capture.round + 1, now)
            self._say(_capture(event, self._rounds), highlight=False)

    def _round(self, number: int, now: float) -> None:
        """A round's captures come together, at its end."""
        if number <= self._made:
            return
        self._made = number
        self._estimate.round(now)
        seconds = self._estimate.left(number)
        self._show("" if seconds is None else f"about {words.span(seconds)} left")

    def _show(self, left: str) -> None:
        self._tell(self._arm, self._made, self._before + self._made, left)


def _capture(event: Captured, rounds: int) -> str:
    one = event.capture
    copies = "?" if one.h2d_copies is None else f"{one.h2d_copies:,}"
    return (
        f"{(one.round + 1) / rounds:4.0%} round {one.round + 1:3} size {one.shape:3}: "
        f"{one.seconds * 1e3:8.2f} ms, {copies} H2D copies"
    )


def show(console: Console, found: Reproduction, compared: Sequence[Compared] = ()) -> None:
    """Print what was measured."""
    arms = outcomes(found.report)
    if arms:
        console.print(_beside(arms))
    for outcome in arms:
        _say(console, f"{terminal.ARMS[outcome.series.arm]}, rank {outcome.series.rank}")
        _say(console, f"  copies: {said.fitted(outcome.copies, 1, '')}")
        _say(console, f"  time:   {said.fitted(outcome.seconds, 1e3, ' ms')}\n")
    for restart in found.restarts:
        _say(console, f"Not counted above: {said.restarted(restart)}\n")
    terminal.show(console, found.report)
    if compared:
        console.print(_images(found, compared))


def _images(found: Reproduction, compared: Sequence[Compared]) -> Table:
    table = Table(title="The same in other images", box=box.SIMPLE_HEAD, title_justify="left")
    for number, heading in enumerate(said.IMAGE_COLUMNS):
        table.add_column(
            heading, justify="right" if number in _NUMBERS else "left", overflow="fold"
        )
    for _, row in said.images(found, compared):
        table.add_row(*map(escape, row))
    return table


def _say(console: Console, text: str) -> None:
    """Print a line as it is, also where it is longer than the terminal is wide."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def _beside(arms: Sequence[Outcome]) -> Table:
    numbers = sorted({one.number for outcome in arms for one in outcome.shown})
    table = Table(title="Rounds side by side", box=box.SIMPLE_HEAD, title_justify="left")
    table.add_column("arm")
    table.add_column("of each graph")
    for number in numbers:
        table.add_column(f"round {number}", justify="right")
    for outcome in arms:
        by_number = {one.number: one for one in outcome.shown}
        for first, (what, of) in enumerate(said.ROWS.items()):
            cells = [of(by_number[n]) if n in by_number else "-" for n in numbers]
            table.add_row("" if first else terminal.ARMS[outcome.series.arm], what, *cells)
    return table
