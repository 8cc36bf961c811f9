"""From events to evidence: did a server's captures take longer and longer? `suspect` at most.

A bar's clock has whole seconds and its sizes never repeat, so the log can raise a suspicion and
nothing more; larger graphs come first, so a rise is not what one expects of a healthy load.
"""

from collections.abc import Iterator

from msgspec import Struct

from capture_canary.logs.parse import Bar, BrokenBar, Event, Exhaustion, Finish
from capture_canary.model import Growth, Judgement

_MAX_POINTS = 256
_MAX_RUNS = 16
_MAX_FINISHES = 64
_WINDOWS = ((0.10, 0.20), (0.34, 0.34))
"""Shares of the graphs that count as the first and the last ones: few show a rise that comes late,
many one that a clock of whole seconds blurs."""
_TICK = 1
"""Seconds by which the difference of two clock readings may be off."""
_RISE, _FLOOR = 1.3, 0.1
"""Suspect: the last graphs took so many times the first ones' time, and so many seconds more."""


class Run(Struct, kw_only=True):
    """One load's captures of one kind, as a bar showed them."""

    what: str
    mode: str
    total: int
    points: list[tuple[int, int]]
    """Graphs done and seconds gone, from (0, 0)."""

    @property
    def done(self) -> int:
        """Graphs captured so far."""
        return self.points[-1][0]

    def add(self, bar: Bar) -> bool:
        """Takes the next state; False: it is another run's.

        Two servers may write one file with the same bar: what doesn't go forward is theirs, and
        left out, unless it begins anew.
        """
        done, elapsed = self.points[-1]
        if (bar.what, bar.mode, bar.total) != (self.what, self.mode, self.total):
            return False
        if bar.done > done and bar.elapsed >= elapsed:
            # Of thousands of graphs evenly spaced states are kept, and the newest.
            if len(self.points) > 1 and done - self.points[-2][0] < self.total // _MAX_POINTS:
                self.points.pop()
            self.points.append((bar.done, bar.elapsed))
            return True
        return not (bar.done < done and 2 * bar.elapsed <= elapsed)


class Slopes(Struct, frozen=True):
    """Seconds a graph of the first and the last ones, with what the clock leaves open."""

    early: float
    early_most: float
    late: float
    late_least: float

    @property
    def suspect(self) -> bool:
        """The rise is more than the clock can have made up."""
        return self.late_least > max(_RISE * self.early_most, self.early_most + _FLOOR)


def slopes(run: Run) -> Slopes | None:
    """How long a graph took at first and in the end; None: too few states of the bar."""
    found = [s for s in (_slopes(run, *shares) for shares in _WINDOWS) if s is not None]
    return next((s for s in found if s.suspect), found[0] if found else None)


def _slopes(run: Run, first_share: float, last_share: float) -> Slopes | None:
    done, gone = run.points[-1]
    first = next((p for p in run.points if p[0] >= max(2, first_share * run.total)), None)
    before = [p for p in run.points if done - p[0] >= max(2, last_share * run.total)]
    if first is None or not before or before[-1][0] < first[0]:
        return None
    graphs, seconds = done - before[-1][0], gone - before[-1][1]
    return Slopes(
        early=first[1] / first[0],
        early_most=(first[1] + _TICK) / first[0],
        late=seconds / graphs,
        late_least=(seconds - _TICK) / graphs,
    )


class FileEvidence:
    """What one file has said so far. Bounded, whatever it says."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.runs: list[Run] = []
        self.finishes: list[Finish] = []
        self.exhausted: Exhaustion | None = None
        self.broken_bars = 0

    def add(self, event: Event) -> None:
        """Takes one event."""
        if isinstance(event, Bar):
            self._bar(event)
        elif isinstance(event, Finish):
            self.finishes = [*self.finishes[1 - _MAX_FINISHES :], event]
            self.exhausted = None  # a later load had streams enough
        elif isinstance(event, Exhaustion):
            self.exhausted = event
        elif isinstance(event, BrokenBar):
            self.broken_bars += 1

    def _bar(self, bar: Bar) -> None:
        for run in reversed(self.runs):
            if run.add(bar):
                return
        fresh = Run(what=bar.what, mode=bar.mode, total=bar.total, points=[(0, 0)])
        fresh.add(bar)
        self.runs = [*self.runs[1 - _MAX_RUNS :], fresh]

    def load(self) -> Run | None:
        """The last load that captured anything."""
        return next((run for run in reversed(self.runs) if run.done), None)

    def judge(self) -> Judgement:
        """`unknown`, with the cause `suspect` where the last load's captures slowed down."""
        run = self.load()
        found = slopes(run) if run else None
        suspect = found is not None and found.suspect
        return Judgement(
            verdict="unknown",
            cause="suspect" if suspect else None,
            reason=self._reason(run, found, suspect=suspect),
            impact=None,
            matches_law=None,
            growth=Growth(copies=None, seconds=None, series=None),
        )

    def _reason(self, run: Run | None, found: Slopes | None, *, suspect: bool) -> str:
        if self.exhausted is not None:
            return (
                f"a capture failed with {self.exhausted.code}: the NPU ran out of streams."
                " That is another fault; use fewer capture sizes or a newer driver and CANN"
            )
        if run is None:
            return "no capture seen in the log"
        if found is None:
            return f"{run.done} of {run.total} captures seen, too few states of the bar to compare"
        text = f"the first graphs took {found.early:.1f} s each, the last {found.late:.1f} s"
        if suspect:
            return f"{text}: captures slow down; a probe or a trace can tell why"
        return f"{text}: no rise beyond the log's clock of whole seconds"


class LogEvidence:
    """All files' evidence; the longest silent ones are forgotten first."""

    def __init__(self, max_files: int = 64) -> None:
        """Args: files remembered."""
        self._max_files = max_files
        self._files: dict[str, FileEvidence] = {}

    def add(self, path: str, found: Iterator[Event]) -> None:
        """Takes what a piece of a file said."""
        for event in found:
            evidence = self._files.pop(path, None) or FileEvidence()
            evidence.add(event)
            self._files[path] = evidence
            if len(self._files) > self._max_files:
                del self._files[next(iter(self._files))]

    def files(self) -> dict[str, FileEvidence]:
        """By path, the longest silent one first."""
        return dict(self._files)
