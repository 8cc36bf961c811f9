"""One arm of a probe: its records, put into series while they arrive, and whether more of them could matter."""

from collections.abc import Sequence

from capture_canary.model import ArmName, Capture, Series
from capture_canary.probe.messages import Captured, Control, Noted, Record, Started
from capture_canary.probe.plan import plan
from capture_canary.probe.settings import ProbeSettings
from capture_canary.trend import stop
from capture_canary.trend.case import kinds_of
from capture_canary.trend.timed import SeriesTest, alpha_each, rounds_per_unit

TWO = 2


class Arm:
    """One arm's records, put into series while they arrive."""

    def __init__(self, name: ArmName, mode: str | None, settings: ProbeSettings) -> None:
        """Begin without records; the kinds of `settings` are those of this arm."""
        self.name: ArmName = name
        self.mode = mode
        self.settings = settings
        self.started: dict[int, Started] = {}
        self.control: dict[int, int | None] = {}
        self.failure: str | None = None
        self.begun = True
        """Whether its child could be started: where not, that says nothing of the stack."""
        self.notes: list[str] = []
        self._tests: dict[tuple[int, int], SeriesTest] = {}
        self._mode_seen: str | None = None
        self._captures: dict[tuple[int, int], list[Capture]] = {}

    def take(self, record: Record) -> None:
        """Keep what a record says."""
        match record:
            case Started():
                self.started[record.rank] = record
            case Control():
                self.control[record.rank] = record.copies
            case Noted():
                self.notes.append(record.text)
            case Captured():
                self._mode_seen = record.mode or self._mode_seen
                place = (record.series, record.rank)
                self._captures.setdefault(place, []).append(record.capture)
                if not self.settings.preload:
                    self._test(place).add(record.capture)

    def series(self) -> list[Series]:
        """Return what was captured so far."""
        return [
            Series(
                arm=self.name,
                mode=self._mode_seen or self.mode,
                collective=self.settings.kinds[kind].collective,
                graphs=self.settings.kinds[kind].graphs,
                collectives=self._collectives(captures),
                rank=rank,
                device=self.settings.devices[rank],
                # A ring links two peers, a mesh all; between two ranks both link one.
                peers=1 if len(self.settings.devices) == TWO else None,
                captures=captures,
            )
            for (kind, rank), captures in sorted(self._captures.items())
        ]

    def may_end(self, record: Record) -> bool:
        """Whether no further series of this arm could change the verdict; a series that grows is finished first.

        Its last captures are what the growth of time and the curves are made of, and cost milliseconds.
        """
        if self.settings.full or not isinstance(record, Captured):
            return False
        if not self.settings.preload:
            return self._time_decided()
        if self.settings.workload == "vllm":
            return False  # how many graphs a round has vLLM alone knows, and it ends after the last round
        kind = self.settings.kinds[record.series]
        ranks = range(len(self.settings.devices))
        made = [len(self._captures.get((record.series, rank), ())) for rank in ranks]
        planned = plan(kind.graphs, rounds=self.settings.rounds, shapes=self.settings.shapes)
        if min(made) < len([*planned]):
            return False
        return stop.decided(
            self.series(),
            ranks=len(ranks),
            arm=self.name,
            kinds=[(k.collective, k.graphs) for k in self.settings.kinds],
        )

    def _collectives(self, captures: Sequence[Capture]) -> int | None:
        """Return the collectives of each graph; None where graphs differ, as the pieces of a model do."""
        counted = {sum(one.collectives.values()) for one in captures if one.collectives}
        if not counted:
            return self.settings.collectives
        return counted.pop() if len(counted) == 1 else None

    def _test(self, place: tuple[int, int]) -> SeriesTest:
        settings = self.settings
        if place not in self._tests:
            self._tests[place] = SeriesTest(
                settings.shapes,
                alpha=alpha_each(0, kinds=len(kinds_of((), "probe")), ranks=len(settings.devices)),
                floor_seconds=settings.floor_seconds,
                floor_ratio=settings.floor_ratio,
                rounds_per_unit=rounds_per_unit(settings.rounds),
            )
        return self._tests[place]

    def _time_decided(self) -> bool:
        """Whether time says that a series grows, or of all of them that further captures would not change a thing."""
        tests = [*self._tests.values()]
        if any(test.decision == "grows" for test in tests):
            return True
        planned = len(self.settings.kinds) * len(self.settings.devices)
        return len(tests) == planned and all(
            test.decision == "flat" or test.exhausted for test in tests
        )
