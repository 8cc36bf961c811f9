"""How long a reproduction still takes: rounds get slower in a straight line, and so does the estimate."""

from collections.abc import Callable

from capture_canary.trend import line


class Estimate:
    """Learns from each round how long those to come will take."""

    def __init__(self, *, rounds: int, arms: int) -> None:
        """Plan that many rounds in each of that many arms."""
        self._rounds = rounds
        self._arms = arms
        self._began = 0.0
        self._last = 0.0
        self._start_seconds: float | None = None
        self._took: list[float] = []
        self._first: float | None = None

    def arm(self, now: float) -> None:
        """Begin an arm; the next one starts as slowly as this one did, and its rounds begin as fast."""
        self._arms -= 1
        self._began = now
        self._last = 0.0
        self._took = []

    def round(self, now: float) -> None:
        """Take note that a round was made. The first one also has the start of vLLM, and its own set-up."""
        if not self._last:
            self._start_seconds = now - self._began
        else:
            self._took.append(now - self._last)
            self._first = self._first or self._took[0]
        self._last = now

    def left(self, made: int) -> float | None:
        """Return the seconds until all is measured, `made` rounds of this arm being done; None: not known yet."""
        if self._first is None or self._start_seconds is None:
            return None
        flat = self._first
        # Of an arm that has not begun nothing tells that its rounds will get slower.
        later = self._arms * (self._start_seconds + (self._rounds - 1) * flat)
        course = self._course()
        return sum(course(number) for number in range(made, self._rounds)) + later

    def _course(self) -> Callable[[int], float]:
        """Return what tells how long round `number`, from 0, of this arm takes."""
        took = self._took
        fitted = line.fit([(float(number), seconds) for number, seconds in enumerate(took, 1)])
        if fitted is None:
            mean = sum(took) / len(took) if took else self._first or 0.0
            return lambda _number: mean
        least = min(took)  # where noise makes the line fall, rounds do not come to take nothing
        return lambda number: max(fitted.intercept + fitted.slope * number, least)
