"""The lines of a reproduction's journal: what they say, and what is believed of them."""

from typing import Literal

import msgspec

from capture_canary.model import ArmName, Capture
from capture_canary.probe.messages import Captured, Control, Failed, Record, Started
from capture_canary.probe.settings import ProbeSettings

_MOST = 1 << 53
"""Above every count and time that a capture can have; below it a float has every whole number."""


class Header(msgspec.Struct, frozen=True, kw_only=True, tag="reproduction", forbid_unknown_fields=True):  # fmt: skip
    """The first line: what is measured. Only a run of the same may go on."""

    version: Literal[1] = 1
    begun: float
    """Unix seconds."""
    settings: ProbeSettings
    emulated: bool
    stack: dict[str, str]
    """Versions by package, as the files of the CANN in use say."""
    model: str | None
    """SHA-256 of the model's config.json."""


class ArmBegun(msgspec.Struct, frozen=True, kw_only=True, tag="begun", forbid_unknown_fields=True):
    """An arm begins, in new processes: HCCL's lists are empty."""

    arm: ArmName
    mode: str | None
    at: float


class Measured(msgspec.Struct, frozen=True, kw_only=True, tag="measured", forbid_unknown_fields=True):  # fmt: skip
    """A record of the arm under way."""

    record: Record


class ArmEnded(msgspec.Struct, frozen=True, kw_only=True, tag="ended", forbid_unknown_fields=True):
    """The arm under way has ended by itself; where this is missing it was interrupted."""

    failure: str | None
    at: float


Event = ArmBegun | Measured | ArmEnded


class Attempt(msgspec.Struct, kw_only=True):
    """One arm, from its processes' start to their end or until somebody ended them."""

    arm: ArmName
    mode: str | None
    begun: float
    """Unix seconds."""
    records: list[Record] = []
    ended: ArmEnded | None = None

    @property
    def complete(self) -> bool:
        """Whether it was measured to its end."""
        return self.ended is not None and self.ended.failure is None


def differences(old: Header, new: Header) -> list[str]:
    """Return in what two differ, each by the option or the part that says it; what only bounds a run does not count."""
    pairs = [
        (name, getattr(old.settings, field), getattr(new.settings, field))
        for field, name in _TOLD.items()
    ]
    pairs += [
        ("the model's config.json", old.model, new.model),
        ("--emulate", old.emulated, new.emulated),
    ]
    packages = sorted(old.stack.keys() | new.stack.keys())
    pairs += [(name, old.stack.get(name), new.stack.get(name)) for name in packages]
    return [f"{name} was {_said(a)}, is {_said(b)}" for name, a, b in pairs if a != b]


_TOLD = {
    "python": "--python or --env",
    "model": "--model",
    "collectives": "--layers (as collectives a graph)",
    "graph_mode": "--cudagraph-mode",
    "devices": "--tp (as NPUs)",
    "rounds": "--rounds",
    "shapes": "--sizes",
    "arms": "arms",
    "mode": "HCCL_OP_EXPANSION_MODE",
}


def _said(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))[:80]
    return "none" if value is None else str(value)[:80]


def take(event: Event, attempts: list[Attempt], header: Header) -> None:
    """Put an event where it belongs.

    Raises:
        ValueError: it belongs nowhere.
    """
    if isinstance(event, ArmBegun):
        if event.arm not in (header.settings.arms or ()):
            raise ValueError(f"{event.arm} is no arm of this reproduction")
        attempts.append(Attempt(arm=event.arm, mode=event.mode, begun=event.at))
        return
    if not attempts or attempts[-1].ended is not None:
        raise ValueError("no arm is under way")
    if isinstance(event, ArmEnded):
        attempts[-1].ended = event
        return
    _check(event.record, header.settings)
    attempts[-1].records.append(event.record)


def _check(record: Record, settings: ProbeSettings) -> None:
    if isinstance(record, Started | Control | Captured | Failed) and not (
        0 <= record.rank < len(settings.devices)
    ):
        raise ValueError(f"there is no rank {record.rank}")
    if not isinstance(record, Captured):
        return
    if not 0 <= record.series < len(settings.kinds):
        raise ValueError(f"there is no series {record.series}")
    check_capture(record.capture)
    if record.capture.round >= settings.rounds:
        raise ValueError(f"there is no round {record.capture.round}")


def check_capture(one: Capture) -> None:
    """See that a capture's numbers are such as a capture can have.

    Raises:
        ValueError: one is not.
    """
    numbers = (
        *(one.order, one.round, one.shape, one.begin_ns, one.seconds),
        *(one.h2d_copies, one.h2d_bytes, one.copy_seconds, one.control_seconds),
        *one.collectives.values(),
    )
    if any(not 0 <= number < _MOST for number in numbers if number is not None):
        raise ValueError("a capture has a number that none can have")
