"""A prober as a process of its own, so that who comes onto its NPUs is no child of it; prints what it saw as JSON.

usage: python -m tests.faults.prober FOLDER EMULATE ROUNDS SEED [SETTING=VALUE …]

Before an arm that is not a probe's first it prints its name, and waits for a line.
"""

# ruff: noqa: SLF001, T201  # it looks into a prober, and prints for the test that started it

import json
import random
import sys
import time
from pathlib import Path
from typing import Any

from capture_canary.gate import watch
from capture_canary.probe.measure import ArmStarted, Event
from capture_canary.stack.npus import Npus
from tests.service.parts import Parts

MARK = "@"
"""Begins what it prints: the log goes the same way."""
EVERY = 0.05
"""Seconds between looks: an emulated probe is over before the next one of a node would be."""


class Seen:
    """When looks at the NPUs were, and when arms began."""

    def __init__(self, parts: Parts, *, ask: bool):
        self.looks: list[tuple[float, float]] = []
        self.arms: list[tuple[float, tuple[float, float]]] = []
        """Each with the last look that had ended before."""
        self.ask = ask
        self._smi = parts.prober._npu_smi
        parts.prober._npu_smi = self  # type: ignore[assignment]
        watching = parts.prober._watching

        def heard(attempt: Any, cancel: Any) -> Any:
            return Heard(watching(attempt, cancel), self, cancel)

        parts.prober._watching = heard  # type: ignore[method-assign]

    def read(self) -> Npus:
        begin = time.monotonic()
        seen = self._smi.read()
        self.looks.append((begin, time.monotonic()))
        return seen


class Heard:
    """What the prober hears of a probe; an arm counts as begun unless the look before it ended the probe."""

    def __init__(self, inner: Any, seen: Seen, cancel: Any):
        self._inner, self._seen, self._cancel = inner, seen, cancel
        self._arms = 0

    def __enter__(self):
        observe = self._inner.__enter__()

        def heard(event: Event) -> None:
            if isinstance(event, ArmStarted):
                self._arms += 1
                if self._seen.ask and self._arms > 1:
                    print(MARK, event.arm, flush=True)
                    sys.stdin.readline()
            observe(event)
            if isinstance(event, ArmStarted) and not self._cancel.requested:
                self._seen.arms.append((time.monotonic(), self._seen.looks[-1]))

        return heard

    def __exit__(self, *error: object):
        return self._inner.__exit__(*error)


def main() -> None:
    folder, emulate, rounds, seed, *given = sys.argv[1:]
    ask = "ask" in given
    if not ask:
        watch.EVERY = EVERY
    parts = Parts(Path(folder), emulate, **dict(one.split("=") for one in given if one != "ask"))
    seen = Seen(parts, ask=ask)
    draw = random.Random(int(seed))  # noqa: S311  # when, no secret
    print(MARK, "ready", flush=True)
    for _ in range(int(rounds)):
        time.sleep(draw.uniform(0, 0.1))
        parts.attempt()
    state = parts.board.view.state
    report = state.reports.get("probe")
    found = {
        "arms": seen.arms,
        "runs": state.totals.runs,
        "skips": state.totals.skips,
        "failures": state.totals.failures,
        "latched": parts.latch.why(),
        "report": [report.verdict, report.cause] if report else None,
    }
    parts.store.close()
    print(MARK, json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
