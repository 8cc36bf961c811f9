"""`python -m bench.interference`: what a server beside us loses, and what we take of its node.

A victim captures and replays graphs on NPUs 0 and 1 of an emulated node, by torch-npu; we are beside it or not, in
short blocks whose order is drawn: ABBA or BAAB, so that the drift of the machine falls on both alike. Each turn starts
victims anew, and counts as one: what a process has from its place in memory does not cancel within it.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import NamedTuple

from bench.interference import taken
from bench.interference.beside import Beside
from bench.interference.estimate import Found, Quads, report
from bench.interference.victim import EMULATED, Block, Size, Victim

ENVIRONMENT = "torch-2.13.0"
SIZE = Size(captures=10, replays=50)
REST = 0.05
"""Seconds between two blocks."""


class Condition(NamedTuple):
    """Blocks without (A) and with (B)."""

    without: Victim
    beside: Victim
    """The same, unless what is compared is in the victim."""
    ours: Callable[[], AbstractContextManager[None]]
    shared: bool = False
    """We may run on the victim's core too."""
    often: int = 3
    """Times the quads that are asked for: what is there all day is to be known best."""


class Turn:
    """Victims started anew, and each condition once or more."""

    def __init__(
        self, undo: ExitStack, environment: str | None, ours: Beside, folder: Path, size: Size
    ) -> None:
        """Start the victims: one, its twin, and one with the tracer in it."""
        plain, twin, traced = (
            undo.enter_context(Victim(environment, folder / "traces", traced=wanted))
            for wanted in (False, False, True)
        )
        self._size, self._ours = size, ours
        self.victims = (plain, twin, traced)
        self.conditions = {
            "nothing": Condition(plain, plain, nullcontext),
            "nothing, another process": Condition(plain, twin, nullcontext),
            "the tracer in it": Condition(plain, traced, nullcontext),
            "the daemon, observing": Condition(plain, plain, ours.observing),
            "a probe, on another core": Condition(plain, plain, ours.probing, often=1),
            "a probe, cores shared": Condition(plain, plain, ours.probing, shared=True, often=1),
        }
        for victim in self.victims:  # what is used once is used now
            self._pin(victim, shared=False)
            victim.block(size)

    def _pin(self, victim: Victim, *, shared: bool) -> None:
        cores = sorted(os.sched_getaffinity(0))
        victim.pin(cores if shared else cores[:1])
        self._ours.pin(cores if shared else cores[1:] or cores)

    def pids(self) -> set[int]:
        """Return the victims' processes."""
        return {pid for victim in self.victims for pid in victim.pids}

    def quad(self, name: str, order: Sequence[bool]) -> tuple[list[Block], list[Block]]:
        """Make four blocks; return those without and those with."""
        condition = self.conditions[name]
        found: tuple[list[Block], list[Block]] = ([], [])
        for victim in {condition.without, condition.beside}:
            self._pin(victim, shared=condition.shared)
        for beside in order:
            time.sleep(REST)
            with condition.ours() if beside else nullcontext():
                victim = condition.beside if beside else condition.without
                found[beside].append(victim.block(self._size))
        return found


def measure(environment: str | None, turns: int, quads: int, size: Size, seed: int) -> Found:
    """Make all blocks of all turns."""
    held: list[taken.Held] = []
    draw, found = random.Random(seed), Quads()  # noqa: S311  # an order, no secret
    with tempfile.TemporaryDirectory() as made, ExitStack() as all_turns:
        folder = Path(made)
        os.environ["CAPTURE_CANARY_EMULATE_NODE"] = str(folder / "node")
        ours = Beside(folder, EMULATED)
        all_turns.callback(ours.end)
        for number in range(turns):
            with ExitStack() as undo:
                print(f"turn {number + 1}, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
                turn = Turn(undo, environment, ours, folder, size)
                found.next_turn()
                names = [name for name, one in turn.conditions.items() for _ in range(one.often)]
                for name in draw.sample(names * quads, len(names) * quads):
                    order = draw.choice([(False, True, True, False), (True, False, False, True)])
                    found.add(name, *turn.quad(name, order))
                held.append(taken.while_probing(ours, folder / "node", turn.pids()))
        probe = taken.of_a_probe(ours)
        busy = ours.busy
    return Found(found, taken.most(held), probe, taken.of_a_day(), busy)


def main(given: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--victim", default=ENVIRONMENT, help="an environment, or `acl` (%(default)s)"
    )
    parser.add_argument("--turns", type=int, default=12, help="times that victims start anew")
    parser.add_argument(
        "--quads",
        type=int,
        default=3,
        help="of a probe in a turn, and thrice as many of what is there all day",
    )
    parser.add_argument("--seed", type=int, default=1, help="of the order of blocks")
    args = parser.parse_args(given)
    environment = None if args.victim == "acl" else args.victim
    print(f"load at the begin: {' '.join(map(str, os.getloadavg()))}", flush=True)
    report(measure(environment, args.turns, args.quads, SIZE, args.seed))
    print(f"\nload at the end: {' '.join(map(str, os.getloadavg()))}")


if __name__ == "__main__":
    main()
