"""The nouns of the gate: the rules an operator sets, the facts of a moment, the decision."""

from typing import Literal

import msgspec

from capture_canary.stack.npus import Npus

Reason = Literal[
    "paused",
    "latched",
    "locked",
    "budget",
    "npus_unknown",
    "not_ours",
    "unhealthy",
    "driver_mismatch",
    "busy",
    "holders_unseen",
    "hbm",
    "streams",
    "node_busy",
    "no_npus",
    "fleet_limit",
    "kubernetes",
]
"""Why there is no probe: a label value of `probe_skips_total`, so few, short and stable."""

Place = Literal["host", "container", "privileged"]
"""Where we run. A privileged container sees every device and every process, as the host does."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator sets; docs/gate.md says why each is as it is."""

    devices: int = 2
    """Chips that a probe takes; one rank alone never shows the growth."""
    only: tuple[int, ...] = ()
    """Numbers of the chips that it may take; none: any of ours."""
    unmanaged: bool = False
    """Bare metal: nobody hands out NPUs here, so all of them are ours to take when free."""
    assume_exclusive: bool = False
    """Chips are handed to one container only: then quiet ones may be probed with holders unseen."""
    any_driver: bool = False
    """Probe even where the vendor's table says that CANN and driver don't go together."""
    policy: Literal["idle-only", "prefer-idle"] = "idle-only"
    patience: float = 86_400.0
    """Seconds. `prefer-idle`: age of the last probe from which a busy host no longer matters."""
    budget: float = 1800.0
    """Device-seconds a day."""
    probe_device_seconds: float = 240.0
    """What one probe may take at most: its deadline times its chips."""
    probe_hbm_mb: int = 1024
    """HBM that a probe takes on a chip: two HCCL buffers, a context, its payload."""
    reserve_hbm_mb: int = 2048
    """HBM left free beside that."""
    idle_hbm_mb: int = 4096
    """HBM in use on a chip that nobody uses; of chips above 64 GB, 6 % where that is more."""
    probe_streams: int = 512
    """Streams that a probe's graphs hold on a chip at a time."""
    reserve_streams: int = 128
    """Streams left free beside those."""


class Holders(msgspec.Struct, frozen=True, kw_only=True):
    """Which processes hold device nodes open, from /proc."""

    pids: dict[int, tuple[int, ...]]
    """By N of /dev/davinciN."""
    complete: bool
    """All processes of the node were looked at."""
    why: str
    """How that is known."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a moment. What could not be known is None and has its reason beside it."""

    emulated: bool = False
    paused: str | None = None
    """Who or what paused probing."""
    latched: str | None = None
    """Why probing is latched off on this node."""
    locked: str | None = None
    """Who holds the node's probe lock, or why it cannot be had."""
    spent_device_seconds: float = 0.0
    """By probes of the last 24 h."""
    npus: Npus | None = None
    npus_error: str = "not looked at"
    exporter_error: str | None = None
    """Why npu-exporter, though configured, was not believed."""
    place: Place = "container"
    nodes: frozenset[int] = frozenset()
    """N of every /dev/davinciN that we see."""
    holders: Holders | None = None
    sees_all: bool = False
    """The source of `npus` shows every process of the node, not only those of containers."""
    sees_all_why: str = "not known"
    cann: str | None = None
    driver: str | None = None
    soc: str | None = None
    """Family: a2, a3, 950."""
    load: float | None = None
    """Runnable tasks a CPU, 5 minutes' mean."""
    last_probe_age: float | None = None
    """Seconds since the last probe that ended; None: never one."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One question the gate asked."""

    name: str
    ok: bool | None
    """None: not asked, as an earlier answer was no."""
    detail: str


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The answer, with everything it rests on."""

    allowed: bool
    reason: Reason | None
    """Of the first check that said no."""
    sentence: str
    checks: tuple[Check, ...]
    devices: tuple[int, ...] = ()
    """N of the /dev/davinciN to use, where allowed."""


def explain(decision: Decision) -> str:
    """The decision as plain text: for the daemon's page and `-v`."""
    marks = {True: "yes", False: "NO ", None: " - "}
    lines = [f"{marks[c.ok]}  {c.name:<10}  {c.detail}" for c in decision.checks]
    return "\n".join([decision.sentence, "", *lines])
