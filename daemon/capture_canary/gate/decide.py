"""The decision: a pure function of rules and facts.

The first questions are about the node; the later ones sort out chips, and say no when too few
are left. The first no is the reason. What cannot be known is said, and is never taken for a yes
where a server could be disturbed.
"""

from collections.abc import Callable

from capture_canary.gate.choose import card_of, choose
from capture_canary.gate.compat import compatible
from capture_canary.gate.model import Check, Decision, Reason, Rules, Snapshot
from capture_canary.stack.npus import Chip

_STREAMS = {"a2": 1984, "a3": 1984, "950": 1984}
"""Streams of a chip, by SoC family (CANN's stream management page)."""
_IDLE_SHARE = 0.06
_LOAD_IDLE, _LOAD_MOST = 0.2, 0.8
"""Load a CPU of an idle host, and what `prefer-idle` comes to accept (opendcdiag's figures)."""
_HOUR = 3600.0

Answer = tuple[bool, str]


def decide(rules: Rules, facts: Snapshot) -> Decision:
    """May we probe now, and on which chips?"""
    funnel = _Funnel(rules, facts)
    checks: list[Check] = []
    refusal: tuple[Reason, str] | None = None
    for name, reason, ask in funnel.questions():
        if refusal is not None:
            checks.append(Check(name=name, ok=None, detail="not asked"))
            continue
        ok, detail = ask()
        checks.append(Check(name=name, ok=ok, detail=detail))
        if not ok:
            refusal = (funnel.sharper or reason, detail)
    if refusal is not None:
        sentence = f"No probe now ({refusal[0]}): {refusal[1]}."
        return Decision(allowed=False, reason=refusal[0], sentence=sentence, checks=tuple(checks))
    devices = choose(funnel.free, rules.devices, facts.soc)
    names = ", ".join(f"davinci{n}" for n in devices)
    return Decision(
        allowed=True,
        reason=None,
        sentence=f"A probe may run now, on {names}.",
        checks=tuple(checks),
        devices=tuple(devices),
    )


class _Funnel:
    """The questions in their order, and the chips that are left."""

    def __init__(self, rules: Rules, facts: Snapshot) -> None:
        self._rules = rules
        self._facts = facts
        self.all: tuple[Chip, ...] = facts.npus.chips if facts.npus else ()
        self.free: list[Chip] = list(self.all)
        self.sharper: Reason | None = None
        """A more exact reason than the question's own."""

    def questions(self) -> list[tuple[str, Reason, Callable[[], Answer]]]:
        return [
            ("paused", "paused", self._paused),
            ("latch", "latched", self._latch),
            ("lock", "locked", self._lock),
            ("budget", "budget", self._budget),
            ("npus", "npus_unknown", self._enumerated),
            ("ours", "not_ours", self._wanted),
            ("health", "unhealthy", self._healthy),
            ("driver", "driver_mismatch", self._driver),
            ("processes", "busy", self._alone),
            ("hbm", "hbm", self._hbm),
            ("streams", "streams", self._streams),
            ("idle", "node_busy", self._idle),
        ]

    def _paused(self) -> Answer:
        return self._facts.paused is None, self._facts.paused or "not paused"

    def _latch(self) -> Answer:
        return self._facts.latched is None, self._facts.latched or "not latched off"

    def _lock(self) -> Answer:
        return self._facts.locked is None, self._facts.locked or "no other probe on this node"

    def _budget(self) -> Answer:
        spent, most = self._facts.spent_device_seconds, self._rules.budget
        after = spent + self._rules.probe_device_seconds
        text = f"{spent:.0f} of {most:.0f} device-seconds spent in 24 h"
        return after <= most, f"{text}, a probe may take {self._rules.probe_device_seconds:.0f}"

    def _enumerated(self) -> Answer:
        if self._facts.npus is None:
            return False, self._facts.npus_error
        count = len(self.all)
        note = f", {self._facts.exporter_error}" if self._facts.exporter_error else ""
        return count > 0, f"{count} chips by {self._facts.npus.source}{note}"

    def _wanted(self) -> Answer:
        ok, text = self._ours()
        only = self._rules.only
        if not ok or not only:
            return ok, text
        return self._keep(lambda chip: chip.phy_id in only, f"named by probe.devices, {text}")

    def _ours(self) -> Answer:
        facts = self._facts
        if facts.emulated:
            return self._keep(lambda chip: chip.phy_id is not None, "emulated: all are ours")
        if self._rules.unmanaged:
            # A container may have been given only some of them.
            return self._keep(
                lambda chip: chip.phy_id in facts.nodes, "unmanaged: all that are visible are ours"
            )
        if facts.place != "container":
            return False, (
                f"in a {facts.place} context every NPU is visible and none was given to us;"
                " where nobody hands out NPUs, set unmanaged: true"
            )
        return self._keep(lambda chip: chip.phy_id in facts.nodes, "given to this container")

    def _healthy(self) -> Answer:
        return self._keep(lambda chip: chip.health == "OK", "healthy")

    def _driver(self) -> Answer:
        if self._facts.emulated:
            return True, "emulated: no driver"
        driver = self._facts.driver or (self._facts.npus.version if self._facts.npus else None)
        ok, text = compatible(self._facts.cann, driver)
        if ok is False and self._rules.any_driver:
            return True, f"{text}; any_driver is set"
        return ok is not False, text

    def _alone(self) -> Answer:
        busy = {c.phy_id: text for c in self.free if (text := self._holders(c)) is not None}
        ok, text = self._keep(lambda chip: chip.phy_id not in busy, "no process on them")
        if not ok:
            return False, f"{text} ({'; '.join(list(busy.values())[:4])})"
        unseen = {c.phy_id: text for c in self.free if (text := self._hidden(c)) is not None}
        ok, text = self._keep(lambda chip: chip.phy_id not in unseen, "no process on them")
        if not ok:
            self.sharper = "holders_unseen"
            return False, f"{text} ({'; '.join(list(unseen.values())[:4])})"
        return True, text

    def _holders(self, chip: Chip) -> str | None:
        """Who is seen to hold it."""
        npus, holders = self._facts.npus, self._facts.holders
        shown = npus.on(chip.phy_id) if npus and chip.phy_id is not None else ()
        if shown:
            return f"davinci{chip.phy_id}: pid {shown[0].pid} {shown[0].name}".rstrip()
        if chip.processes:
            return f"davinci{chip.phy_id}: {chip.processes} processes"
        pids = holders.pids.get(chip.phy_id, ()) if holders and chip.phy_id is not None else ()
        return f"davinci{chip.phy_id}: open in pid {pids[0]}" if pids else None

    def _hidden(self, chip: Chip) -> str | None:
        """Why somebody unseen may hold it."""
        facts, name = self._facts, f"davinci{chip.phy_id}"
        if chip.processes is None and not (facts.holders and facts.holders.complete):
            return f"{name}: its processes were not shown"
        if chip.aicore:
            return f"{name}: AI cores {chip.aicore} % busy, yet no process shown"
        idle = max(self._rules.idle_hbm_mb, _IDLE_SHARE * (chip.hbm_total_mb or 0))
        if (chip.hbm_used_mb or 0) > idle:
            return f"{name}: {chip.hbm_used_mb} MB of HBM in use, yet no process shown"
        if facts.emulated or facts.sees_all or (facts.holders and facts.holders.complete):
            return None
        if self._rules.assume_exclusive and chip.hbm_used_mb is not None:
            return None
        return f"{name}: not every process can be seen: {facts.sees_all_why}"

    def _hbm(self) -> Answer:
        need = self._rules.probe_hbm_mb + self._rules.reserve_hbm_mb
        return self._keep(lambda chip: _has_free(chip, need), f"{need} MB of HBM free")

    def _streams(self) -> Answer:
        need = self._rules.probe_streams + self._rules.reserve_streams
        limit = _STREAMS.get(self._facts.soc or "")
        if limit is None:
            return True, f"the stream limit of SoC {self._facts.soc or 'unknown'} is not known"
        return need <= limit, (
            f"{limit} on a chip that nobody else uses, {need} wanted with the reserve"
        )

    def _idle(self) -> Answer:
        load, age = self._facts.load, self._facts.last_probe_age
        limit, why = self._load_limit(age)
        if load is None:
            return True, "the host's load is not known"
        others = {card_of(c, self._facts.soc) for c in self.all if self._holders(c)}
        chosen = choose(self.free, self._rules.devices, self._facts.soc)
        cards = {card_of(c, self._facts.soc) for c in self.free if c.phy_id in chosen}
        if limit is not None and cards & others:
            return False, f"a server uses another chip of the same NPU; {why}"
        text = f"load {load:.2f} a CPU, {why}"
        return limit is None or load <= limit, text

    def _load_limit(self, age: float | None) -> tuple[float | None, str]:
        """The load below which a host counts as idle; None: it doesn't matter any more."""
        if self._rules.policy == "idle-only":
            return _LOAD_IDLE, f"idle-only: at most {_LOAD_IDLE:g}"
        if age is None or age >= self._rules.patience:
            since = "never probed" if age is None else f"last probe {age / _HOUR:.0f} h ago"
            return None, f"prefer-idle: {since}, patience is over"
        limit = _LOAD_IDLE + (_LOAD_MOST - _LOAD_IDLE) * max(0.0, age) / self._rules.patience
        return limit, f"prefer-idle: at most {limit:.2f}, last probe {age / _HOUR:.1f} h ago"

    def _keep(self, fits: Callable[[Chip], bool], what: str) -> Answer:
        """Keeps the chips that fit; enough of them, or not?"""
        dropped = [c for c in self.free if not fits(c)]
        self.free = [c for c in self.free if fits(c)]
        text = f"{len(self.free)} chips {what}"
        if dropped:
            text += f", not {', '.join(_name(c) for c in dropped[:16])}"
        need = self._rules.devices
        ok = len(self.free) >= need
        return ok, text if ok else f"{text}; a probe takes {need}"


def _name(chip: Chip) -> str:
    where = f"davinci{chip.phy_id}" if chip.phy_id is not None else f"NPU {chip.npu}.{chip.chip}"
    return where if chip.health == "OK" else f"{where} (health {chip.health})"


def _has_free(chip: Chip, need_mb: int) -> bool:
    used, total = chip.hbm_used_mb, chip.hbm_total_mb
    return used is not None and total is not None and total - used >= need_mb
