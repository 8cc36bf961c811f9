"""When to probe: a grid of times by the wall clock, shifted by what this node's name decides.

All is computed from the plan and from when the last probe began, so a restart neither probes early nor forgets.
"""

import hashlib
import math
import re
import threading
import time
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeVar

import msgspec

from capture_canary.identity import NO_BOOT_ID, boot_id

if TYPE_CHECKING:
    from apscheduler.triggers.cron import CronTrigger

T = TypeVar("T")

CLOCK_TOLERANCE = 1.0
"""Seconds that the wall clock may drift from the monotonic one before it counts as set."""

_STATE_KEY = "schedule"
_CRON_FIELDS = ("minute", "hour", "day", "month", "day_of_week")


class Memory(Protocol):
    """What outlives a restart; the history keeps it."""

    @property
    def durable(self) -> bool:
        """Whether what is set now will be there after a restart."""
        ...

    def get(self, key: str, kind: type[T]) -> T | None:
        """Return what was set, or None where there is nothing that is a `kind`."""
        ...

    def set(self, key: str, value: msgspec.Struct) -> None:
        """Keep a value; failing to is the memory's to report, not the schedule's."""
        ...


class Clock(Protocol):
    """The two clocks of a node, and which boot the second belongs to."""

    boot: str

    def wall(self) -> float:
        """Unix seconds; may be set to anything at any time."""
        ...

    def monotonic(self) -> float:
        """Seconds that only ever grow within a boot, the same for all its processes."""
        ...


class SystemClock:
    """The clocks of this node."""

    def __init__(self) -> None:
        """Learn which boot this is."""
        known = boot_id()
        self.boot = "" if known == NO_BOOT_ID else known  # two unknown boots are not the same one

    wall = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)


class Plan(NamedTuple):
    """A grid of times: every `interval` seconds, or by a cron line (UTC); `offset` later on this node."""

    interval: float
    cron: str | None
    offset: float

    def after(self, moment: float) -> float:
        """Return the first time of the grid that is later than a moment; infinity: there is none."""
        if self.cron is None:
            begun = math.floor((moment - self.offset) / self.interval)
            found = (begun + 1) * self.interval + self.offset
            # Rounding must not give the moment itself again.
            return found if found > moment else found + self.interval
        return _cron_after(self.cron, moment - self.offset) + self.offset


class Due(NamedTuple):
    """A probe is to begin now."""

    why: Literal["scheduled", "requested"]
    since: float
    """When it should have begun, unix seconds."""


class _Anchor(msgspec.Struct, frozen=True):
    """A moment by both clocks; `probed`: a probe began then, else the schedule was first set up."""

    wall: float
    monotonic: float
    boot: str
    probed: bool


class Schedule:
    """Says when a probe is due. Any thread may ask; `request` takes no lock, so a signal handler may call it."""

    def __init__(self, plan: Plan, memory: Memory, clock: Clock) -> None:
        """Go on from what the memory holds."""
        self.plan = plan
        """May be replaced at any time, as by a reload."""
        self._memory, self._clock = memory, clock
        self._requested: float | None = None
        self._not_before = -math.inf
        self._lock = (
            threading.Lock()
        )  # the loop asks for the next time while a probe's thread begins
        found = memory.get(_STATE_KEY, _Anchor)
        if found is None or not math.isfinite(found.wall + found.monotonic):
            # A memory that forgets would have every restart of a crash loop be the first start, and probe.
            self._anchor = self._now(probed=not memory.durable)
        else:
            self._anchor = self._of_this_boot(found)
        memory.set(_STATE_KEY, self._anchor)

    @property
    def probed(self) -> bool:
        """Whether a probe ever began here, as far as the memory tells."""
        return self._anchor.probed

    def request(self) -> None:
        """Have a probe begin at once; several requests before it begins are one."""
        self._requested = self._clock.wall()

    def due(self) -> Due | None:
        """Return the probe that is to begin now. It stays due until `began` or `refused`."""
        requested = self._requested
        if requested is not None:
            return Due("requested", requested)
        since = self.next_at()
        if since > self._clock.wall() or self._clock.monotonic() < self._not_before:
            return None
        return Due("scheduled", since)

    def wait(self) -> float:
        """Return the seconds until a scheduled probe is due, by the clocks as they are now."""
        until_tick = self.next_at() - self._clock.wall()
        return max(0.0, until_tick, self._not_before - self._clock.monotonic())

    def next_at(self) -> float:
        """Return when the next scheduled probe is or was due, unix seconds.

        Missed times are one probe. A time nearer to the last probe than half its distance to the time after it is
        left out: what ran late, or on demand, is not run again at once.
        """
        with self._lock:
            self._mend_clock()
            anchor = self._anchor
        if not anchor.probed:
            return anchor.wall + self.plan.offset
        return _after_probe(self.plan, anchor.wall)

    def began(self) -> None:
        """Note that a probe begins: call it before the probe touches anything."""
        self._requested = None
        self._not_before = -math.inf
        with self._lock:
            self._anchor = self._now(probed=True)
            self._memory.set(_STATE_KEY, self._anchor)

    def refused(self, retry: float) -> None:
        """Note that what is due may not run now, and when to ask again. A request is over with that."""
        self._requested = None
        self._not_before = self._clock.monotonic() + retry

    def _now(self, *, probed: bool) -> _Anchor:
        clock = self._clock
        return _Anchor(clock.wall(), clock.monotonic(), clock.boot, probed)

    def _of_this_boot(self, found: _Anchor) -> _Anchor:
        wall, monotonic = self._clock.wall(), self._clock.monotonic()
        if found.boot and found.boot == self._clock.boot and found.monotonic <= monotonic:
            return found
        # Of another boot only the wall clock tells, and no probe began in the future.
        began = min(found.wall, wall)
        return _Anchor(began, monotonic - (wall - began), self._clock.boot, found.probed)

    def _mend_clock(self) -> None:
        """Move the anchor along when the wall clock was set: the time since the last probe is what counts."""
        began = self._clock.wall() - (self._clock.monotonic() - self._anchor.monotonic)
        if abs(began - self._anchor.wall) > CLOCK_TOLERANCE:
            self._anchor = msgspec.structs.replace(self._anchor, wall=began)
            self._memory.set(_STATE_KEY, self._anchor)


@lru_cache(maxsize=2)
def _after_probe(plan: Plan, began: float) -> float:
    """Return the next time; remembered, as the loop asks twice a second and a cron line takes 0.4 ms."""
    first = plan.after(began)
    second = plan.after(first)
    return first if first - began >= (second - first) / 2 else second


def plan_for(*, interval: float, cron: str | None, jitter: float, node: str) -> Plan:
    """Return the plan of a node: its name decides which share of the jitter it waits."""
    share = (
        int.from_bytes(hashlib.sha256(node.encode(errors="replace")).digest()[:6], "big") / 2**48
    )
    return Plan(interval, cron, round(share * jitter, 3))


def node_name(environ: Mapping[str, str], hostname: str) -> str:
    """Return the name that spreads a fleet: NODE_NAME, as charts set it, as a pod's host name changes."""
    return environ.get("NODE_NAME") or hostname


@lru_cache(maxsize=2)
def cron_trigger(line: str) -> "CronTrigger":
    """Return the trigger of a cron line, in UTC: no hour that comes twice or never.

    Raises:
        ValueError: it is none, or says something else here than to other crons.
    """
    # Loaded only where a cron line is used: 1.6 MB that an interval does not need.
    from apscheduler.triggers.cron import CronTrigger  # noqa: PLC0415

    fields = line.split()
    if len(fields) != len(_CRON_FIELDS):
        raise ValueError("it needs five fields: minute, hour, day of month, month, weekday")
    named = dict(zip(_CRON_FIELDS, fields, strict=True))
    for name, field in named.items():
        if not re.fullmatch(r"[A-Za-z0-9*/,-]{1,100}", field):
            raise ValueError(f"{name}: characters that a cron line does not have, or too many")
    if re.search("[0-9]", named["day_of_week"]):
        raise ValueError("weekdays need names (mon-fri): crons differ in what their numbers mean")
    if named["day"] != "*" and named["day_of_week"] != "*":
        raise ValueError(
            "day of month and weekday exclude each other: crons differ in which counts"
        )
    trigger = CronTrigger(**named, timezone=timezone.utc)
    if trigger.get_next_fire_time(None, datetime(2024, 1, 1, tzinfo=timezone.utc)) is None:
        raise ValueError("it never comes")
    return trigger


def _cron_after(line: str, moment: float) -> float:
    try:
        # The trigger gives the first time that is not before `now`.
        later = datetime.fromtimestamp(moment, timezone.utc) + timedelta(microseconds=1)
        found = cron_trigger(line).get_next_fire_time(None, later)
    except (OverflowError, ValueError, OSError):
        return math.inf  # the clock stands outside of the years that a calendar has
    return found.timestamp() if found else math.inf
