"""The daemon as it is, with a clock that is set from outside: in place of waiting for its next beat it asks for orders.

`python -m bench.soak.hand run …` takes the daemon's own arguments. An order is a line of standard input, and is
answered on standard output once the daemon has beaten with it and no probe runs any more.
"""

import sys
import time
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from capture_canary.schedule import Due
    from capture_canary.service.daemon import Daemon

_wall, _monotonic = time.time, time.monotonic


class Order(msgspec.Struct, frozen=True):
    """What happens before the next beat."""

    passing: float = 0.0
    """Seconds that both clocks go on by, beyond those that really pass."""
    setting: float = 0.0
    """Seconds that somebody sets the wall clock by."""
    later: float = 0.0
    """The same, while the next probe runs."""
    environ: dict[str, str] | None = None
    """Environment of the installed CANN from now on; None: as before."""


class Told(msgspec.Struct, frozen=True):
    """How the daemon stands between two beats."""

    decisions: int
    """How often the scheduler was asked whether a probe is due."""
    wait: float
    """Seconds until it says yes."""
    wall: float
    monotonic: float


class Clock:
    """Both clocks of a node, ahead of the real ones."""

    passed = 0.0
    set_by = 0.0

    def wall(self) -> float:
        """Unix seconds."""
        return _wall() + self.passed + self.set_by

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return _monotonic() + self.passed


class Hand:
    """Stands where the daemon waits."""

    def __init__(self, daemon: "Daemon", base: dict[str, str], clock: Clock) -> None:
        """Take over a daemon whose probes run on the CANN of `base`."""
        self._daemon, self._base, self._clock = daemon, base, clock
        self._decisions, self._later = 0, 0.0
        self._really_wait = daemon._wait  # noqa: SLF001  # its signals are still heard
        self._due = daemon._schedule.due  # noqa: SLF001  # counted, not changed
        daemon._wait = self._wait  # type: ignore[method-assign]  # noqa: SLF001
        daemon._schedule.due = self._count  # type: ignore[method-assign]  # noqa: SLF001

    def _count(self) -> "Due | None":
        self._decisions += 1
        return self._due()

    def _wait(self) -> None:
        probe = self._daemon._probe  # noqa: SLF001  # while it runs, time is real
        if probe is not None and probe.is_alive():
            probe.join(0.05)
            self._clock.set_by += self._later
            self._later = 0.0
        else:
            self._obey()
        self._really_wait()

    def _obey(self) -> None:
        told = Told(
            decisions=self._decisions,
            wait=self._daemon._schedule.wait(),  # noqa: SLF001
            wall=self._clock.wall(),
            monotonic=self._clock.monotonic(),
        )
        sys.stdout.buffer.write(msgspec.json.encode(told) + b"\n")
        sys.stdout.buffer.flush()
        line = sys.stdin.buffer.readline()
        if not line:
            self._daemon.stop()
            return
        order = msgspec.json.decode(line, type=Order)
        self._clock.passed += order.passing
        self._clock.set_by += order.setting
        self._later += order.later
        if order.environ is not None:
            self._base.clear()
            self._base.update(order.environ)


def main() -> int:
    """Run the daemon."""
    clock = Clock()
    # Before anything of ours takes its clock from there.
    time.time, time.monotonic = clock.wall, clock.monotonic

    from capture_canary import cli  # noqa: PLC0415
    from capture_canary.commands import run  # noqa: PLC0415
    from capture_canary.service import daemon  # noqa: PLC0415

    daemon.BEAT = 0.0
    build = run.build

    def built(file, web, base):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  # as build
        made, server = build(file, web, base)
        Hand(made, base, clock)
        return made, server

    run.build = built
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
