"""Whether the time of a series' captures grows: a sequential test, both ways, truncated; and the evidence it leaves."""

import math
from collections.abc import Collection, Sequence
from itertools import pairwise
from statistics import fmean, median

from capture_canary.model import (
    Capture,
    Estimate,
    Series,
    ShapeGrowth,
    TimeDecision,
    TimeTest,
)
from capture_canary.trend import slope
from capture_canary.trend.ranks import SLOPES
from capture_canary.trend.sequential import MAX_VALUES, Evidence
from capture_canary.trend.units import Unit, Units

ALPHA = 1e-6
"""Chance of one verdict of a node to call noise a growth of time, over all its series."""
BETA = 1e-2
"""Chance to call a growth of `WORTH` floors none."""
WORTH = 2.0
"""Growths below the floor are none; those of this many floors are found but for beta; between, either may be said."""
MEMORY = 0.25
"""Share of the last unit that is taken off each: what then remains of AR(1) noise (rho 0.6) wanders no further than
independent noise would."""
FLAT_SLOPES = SLOPES[::2]
"""Slopes betted on for "flat": every other one, since nobody is alerted by it, and bets take time."""
EMPIRICAL_BOUND = 3.6e-3
"""False alarms a series, at most, by our own corpus (95 %); bench/statistics makes it, docs/statistics.md shows it."""
_CORRELATED = 0.4
_SURE = 2.33
_FEW = 20
_REPORT_ALPHA = 0.025


class SeriesTest:
    """Tests one series while its captures come in."""

    def __init__(
        self,
        shapes: Collection[int],
        *,
        floor_seconds: float,
        floor_ratio: float,
        alpha: float = ALPHA,
        beta: float = BETA,
        worth_seconds: float | None = None,
        rounds_per_unit: int = 1,
    ) -> None:
        """Begin. `alpha` is this series' share; `worth_seconds`, a growth to be found, is `WORTH` floors by default."""
        self.units = Units(shapes, rounds=rounds_per_unit)
        self.floor = floor_seconds
        self._ratio = floor_ratio
        self._worth = worth_seconds
        self._alpha, self._beta = alpha, beta
        self._bounds = (math.log(1 / alpha), math.log(1 / beta))
        self._rises = Evidence(self._bounds[0])
        self._lags = Evidence(self._bounds[1], slopes=FLAT_SLOPES)
        self._last: Unit | None = None
        self._lag: float | None = None
        """The last value that was not yet looked at for "flat"."""
        self._found: TimeDecision = "open"

    def add(self, capture: Capture) -> None:
        """Take the next capture of the series."""
        self._judge_flat()
        unit = None if self.exhausted else self.units.add(capture)
        if unit is None:
            return
        if self._last is None:
            self.floor = max(self.floor, self._ratio * unit.seconds)
        else:
            self._judge(self._last, unit)
        self._last = unit

    def _judge(self, last: Unit, unit: Unit) -> None:
        seconds, at = (
            new - MEMORY * old for new, old in ((unit.seconds, last.seconds), (unit.at, last.at))
        )
        self._rises.add(seconds - self.floor * at)
        if self._found != "grows" and self._rises.sufficient:
            self._found = "grows"
        worth = WORTH * self.floor if self._worth is None else self._worth
        self._lag = worth * at - seconds

    def _judge_flat(self) -> None:
        """With the capture after, since "flat" is in no hurry: so none has all the work to wait for."""
        if self._lag is None or self._found != "open":
            return
        self._lags.add(self._lag)
        self._lag = None
        if self._lags.sufficient:
            self._found = "flat"

    @property
    def decision(self) -> TimeDecision:
        """What can be said so far."""
        return "unfit" if self._flaw() else self._found

    @property
    def statistic(self) -> float:
        """The evidence so far that time grows by more than the floor, as a logarithm."""
        return self._rises.statistic

    @property
    def exhausted(self) -> bool:
        """Whether further captures would not be looked at."""
        return len(self.units.units) > MAX_VALUES

    def result(self, series: int) -> TimeTest:
        """Return the decision with the evidence; `series` is the index in the report."""
        self._judge_flat()
        units = self.units
        return TimeTest(
            decision=self.decision,
            reason=self._flaw() or self._why(),
            series=series,
            statistic=self._rises.statistic,
            bound=self._bounds[0],
            n=units.used,
            units=len(units.units),
            dropped=units.dropped,
            alpha=self._alpha,
            beta=self._beta,
            alpha_empirical=EMPIRICAL_BOUND,
            floor=self.floor,
            noise=noise(units.units, units.used),
            autocorrelation=autocorrelation(units.units),
            paired=bool(units.paired),
            growth=_growth(units.units),
            shapes=_growths(units),
        )

    def _flaw(self) -> str | None:
        if self.units.flaw:
            return self.units.flaw
        count = len(self.units.units)
        if self._found == "grows" and count >= _FEW:
            found = autocorrelation(self.units.units)
            if found is not None and found > _CORRELATED + _SURE / math.sqrt(count):
                return f"the noise remembers too much (autocorrelation {found:.2f} from round to round)"
        return None

    def _why(self) -> str:
        units, floor = len(self.units.units), f"{self.floor * 1e3:.3g} ms a capture"
        if self._found == "grows":
            return f"time grows by more than {floor}"
        if self._found == "flat":
            return f"time does not grow by {WORTH:g} times {floor} or more"
        if units < 2:  # noqa: PLR2004 - a rise takes two
            return "sizes were not captured again and again"
        return f"undecided after {units} rounds"


def alpha_each(series: int, *, kinds: int, ranks: int) -> float:
    """Return each series' share of a verdict's alpha: all that are planned share alike, whether they come or not."""
    return ALPHA / max(1, series, kinds * ranks)


def rounds_per_unit(rounds: int) -> int:
    """Return how many rounds a unit takes where this many are planned: all of them are to be looked at."""
    return max(1, math.ceil(rounds / MAX_VALUES))


def examine(
    series: Series,
    *,
    index: int,
    alpha: float,
    floor_seconds: float,
    floor_ratio: float,
    rounds: int = 1,
) -> TimeTest:
    """Test a whole series, its captures in any order; `rounds` is how many of them were planned."""
    captures = sorted(
        {capture.order: capture for capture in series.captures}.values(), key=lambda c: c.order
    )
    test = SeriesTest(
        {capture.shape for capture in captures},
        floor_seconds=floor_seconds,
        floor_ratio=floor_ratio,
        alpha=alpha,
        rounds_per_unit=rounds_per_unit(rounds),
    )
    for capture in captures:
        test.add(capture)
    return test.result(index)


def noise(units: Sequence[Unit], captures: int) -> float | None:
    """Return the deviation of one capture's time, s, from how units differ from the next: robust, free of the trend."""
    steps = [b.seconds - a.seconds for a, b in pairwise(units)]
    if len(steps) < 2:  # noqa: PLR2004 - a deviation takes two
        return None
    middle = median(steps)
    off = median(abs(step - middle) for step in steps)
    return 1.4826 * off / math.sqrt(2) * math.sqrt(captures / len(units))


def autocorrelation(units: Sequence[Unit]) -> float | None:
    """Return the correlation of a unit with the next, about a line through either half: a jump or bend is no memory."""
    half = len(units) // 2
    if half < 4:  # noqa: PLR2004 - two points lie on their line
        return None
    left = _residuals(units[:half]) + _residuals(units[half:])
    power = math.fsum(value * value for value in left)
    scale = max(abs(unit.seconds) for unit in units)
    if power <= len(units) * (1e-9 * scale) ** 2:  # nothing but rounding
        return 0.0
    return math.fsum(a * b for a, b in pairwise(left)) / power


def _residuals(units: Sequence[Unit]) -> list[float]:
    at, level = fmean(u.at for u in units), fmean(u.seconds for u in units)
    width = math.fsum((u.at - at) ** 2 for u in units)
    rise = math.fsum((u.at - at) * (u.seconds - level) for u in units) / width
    return [u.seconds - level - rise * (u.at - at) for u in units]


def _slope(units: Sequence[Unit]) -> slope.Slope | None:
    return slope.theil_sen([[(unit.at, unit.seconds) for unit in units]], alpha=_REPORT_ALPHA)


def _growth(units: Sequence[Unit]) -> Estimate | None:
    found = _slope(units)
    if found is None:
        return None
    return Estimate(
        estimate=found.estimate,
        lower=found.lower,
        upper=found.upper,
        n=found.n,
        method="theil-sen of rounds",
    )


def _growths(units: Units) -> list[ShapeGrowth]:
    return [
        ShapeGrowth(
            shape=shape,
            estimate=found.estimate,
            lower=found.lower,
            upper=found.upper,
            n=units.used // len(units.shapes),
        )
        for shape, own in sorted(units.shapes.items())
        if (found := _slope(own)) is not None
    ]
