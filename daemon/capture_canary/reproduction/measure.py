"""Measures what a journal does not have yet: arms that are complete are kept, one that was interrupted begins anew.

An arm cannot go on in the middle: HCCL's resource lists belong to the processes that were ended, those of new ones are
empty, and what was to be shown is how they grow. What the interrupted ones measured is shown beside the rest.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from capture_canary.model import ArmName, Report
from capture_canary.probe.arm import Arm
from capture_canary.probe.measure import ArmEnded, ArmStarted, Event, Observer, Probe
from capture_canary.probe.messages import Record
from capture_canary.reproduction.events import Attempt, Header
from capture_canary.reproduction.journal import Journal
from capture_canary.reproduction.outcome import Outcome, of_series

INTERRUPTED = "interrupted"


class Restart(NamedTuple):
    """An arm that was begun and not finished, and begun anew later."""

    attempt: Attempt
    why: str
    outcome: Outcome | None
    """What it came to so far; None where nothing was captured."""


class Reproduction(NamedTuple):
    """What was measured in one stack."""

    header: Header
    report: Report
    ended: float
    """When the last arm did, Unix seconds."""
    restarts: list[Restart]


def measure(
    journal: Journal, base: Mapping[str, str], *, budget_seconds: float, observe: Observer
) -> Reproduction:
    """Run the arms that the journal does not have complete; return all that it then has.

    Raises:
        OSError: the journal cannot be written.
    """

    def keep(event: Event) -> None:
        if isinstance(event, ArmStarted):
            journal.begin(event.arm, event.mode)
        elif isinstance(event, ArmEnded):
            journal.end(event.failure)
        else:
            journal.add(event)
        observe(event)

    header = journal.header
    settings = msgspec.structs.replace(header.settings, budget_seconds=budget_seconds)
    made: dict[ArmName, list[Record]] = {
        arm: one.records for arm, one in journal.complete().items()
    }
    report = Probe(settings, base, emulated=header.emulated, observe=keep, made=made).run()
    ended = max(one.ended.at for one in journal.attempts if one.ended)
    return Reproduction(header, report, ended, restarts(journal))


def restarts(journal: Journal) -> list[Restart]:
    """Return the attempts that a later one of the same arm took the place of."""
    last = {one.arm: one for one in journal.attempts}
    return [
        Restart(
            one, (one.ended and one.ended.failure) or INTERRUPTED, _outcome(one, journal.header)
        )
        for one in journal.attempts
        if one is not last[one.arm] and not one.complete
    ]


def _outcome(attempt: Attempt, header: Header) -> Outcome | None:
    arm = Arm(attempt.arm, attempt.mode, header.settings)
    for record in attempt.records:
        arm.take(record)
    return of_series(arm.series())
