"""The operations of the API: one table, from which routes and OpenAPI document are made."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from capture_canary.export.api import answers
from capture_canary.export.source import Source
from capture_canary.store import Probe

MAX_ROWS = 500


class WrongParameterError(ValueError):
    """A parameter that cannot be used; says which and why."""


class NotFoundError(LookupError):
    """There is no such thing."""


class Parameter(NamedTuple):
    """A number in path or query."""

    name: str
    about: str
    least: int
    most: int
    default: int | None = None
    """None: it is a part of the path."""

    def read(self, text: str | None) -> int:
        """Return its value.

        Raises:
            WrongParameterError: it is no number within the bounds.
        """
        if text is None and self.default is not None:
            return self.default
        digits = text or ""
        good = digits.isascii() and digits.isdigit() and len(digits) <= len(str(self.most))
        if not good or not self.least <= int(digits) <= self.most:
            raise WrongParameterError(
                f"{self.name} is not a whole number from {self.least} to {self.most}"
            )
        return int(digits)


class Operation(NamedTuple):
    """Something to ask."""

    path: str
    summary: str
    answer: Any
    """Its type."""
    run: Callable[[Source, Mapping[str, int]], object]
    parameters: tuple[Parameter, ...] = ()


_LIMIT = Parameter("limit", "at most so many, newest first", 1, MAX_ROWS, 20)
_SINCE = Parameter("since", "none older than this, Unix seconds", 0, 253_402_300_799, 0)
_ID = Parameter("id", "number of the probe", 1, 2**63 - 1)


def _probe(source: Source, given: Mapping[str, int]) -> Probe:
    found = source.store.probe(given["id"])
    if found is None:
        raise NotFoundError(f"there is no probe {given['id']}, or it is forgotten")
    return found


OPERATIONS: tuple[Operation, ...] = (
    Operation("/status", "This node at a glance", answers.Status, lambda s, _: answers.status(s)),
    Operation(
        "/probes",
        "The last probes, and judgements of traces and logs",
        answers.Probes,
        lambda s, g: answers.Probes(
            probes=s.store.probes(limit=g["limit"], since=float(g["since"]))
        ),
        (_LIMIT, _SINCE),
    ),
    Operation("/probes/{id}", "One probe with its series", Probe, _probe, (_ID,)),
    Operation(
        "/changes",
        "Changes of the verdict",
        answers.Changes,
        lambda s, g: answers.Changes(
            changes=s.store.changes(limit=g["limit"], since=float(g["since"]))
        ),
        (_LIMIT, _SINCE),
    ),
    Operation(
        "/skips",
        "Probes that were due and not made, with reasons",
        answers.Skips,
        lambda s, g: answers.Skips(skips=s.store.skips(limit=g["limit"], since=float(g["since"]))),
        (_LIMIT, _SINCE),
    ),
    Operation(
        "/decision",
        "The gate's last answer, with every check",
        answers.GateAnswer,
        lambda s, _: answers.gate_answer(s),
    ),
    Operation(
        "/explain",
        "How the verdicts in force came about",
        answers.Explanations,
        lambda s, _: answers.explain(s),
    ),
)
