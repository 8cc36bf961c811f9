"""What the history hands out: probes, verdict changes, skips, stack changes and events."""

from typing import Annotated, Any, TypeVar

import msgspec

from capture_canary.model import Cause, Evidence, Report, Stack, VerdictName

T = TypeVar("T")

Moment = Annotated[float, msgspec.Meta(ge=0, lt=253402300800)]
"""Unix seconds before the year 10000: what a damaged row may hold beyond that can't be shown."""


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """One judgement as it is listed: a probe, or a look at a server's trace or log."""

    id: int
    at: Moment
    """When it ended, unix seconds."""
    took: float
    """How long it held devices, s."""
    stack: str
    evidence: Evidence
    emulated: bool
    verdict: VerdictName
    cause: Cause | None
    reason: str
    mode: str | None
    copies: float | None
    """Growth in H2D copies per capture."""
    copies_lower: float | None
    copies_upper: float | None
    seconds: float | None
    """Growth in seconds per capture."""
    seconds_lower: float | None
    seconds_upper: float | None
    impact: float | None
    """Seconds that the growth adds to one load."""
    report: Report | None = None
    """The whole of it; None where it was not asked for, or retention dropped it."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict that differs from the one before it of the same stack and evidence."""

    id: int
    at: Moment
    stack: str
    evidence: Evidence
    verdict: VerdictName
    cause: Cause | None
    reason: str
    emulated: bool
    retired: bool
    """The stack left the node: whatever was open for it is closed."""
    since: Moment
    """When the verdict first became this one; a change of cause or a gap of `unknown` inside a
    degradation does not start it anew."""


class Skip(msgspec.Struct, frozen=True, kw_only=True):
    """Probes not made for one reason, counted together until a probe or another reason."""

    id: int
    first: Moment
    last: Moment
    reason: str
    detail: str
    count: int


class Stacks(msgspec.Struct, frozen=True, kw_only=True):
    """The stacks found on the node from a moment on, by their hash."""

    id: int
    at: Moment
    stacks: dict[str, Stack]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened to the daemon: a start, a reload, a latch."""

    id: int
    at: Moment
    kind: str
    detail: str


def convert(values: list[dict[str, Any]], kind: type[T]) -> list[T]:
    """Return those of `values` that are a `kind`; a damaged row is left out."""
    return [row for row in (_row(value, kind) for value in values) if row is not None]


def _row(value: dict[str, Any], kind: type[T]) -> T | None:
    try:
        return msgspec.convert(value, kind, strict=False)
    except (msgspec.ValidationError, OverflowError):
        return None
