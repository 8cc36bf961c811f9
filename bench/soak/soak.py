"""Emulated months of one daemon: decisions and probes, faults among them, and everything held against what is known."""

import random
import signal
from collections import Counter
from typing import Any

import msgspec
from bench.soak.faults import FAULTS, STACKS, Fault, as_told
from bench.soak.hand import Order
from bench.soak.node import Node, Usage

HOUR = 3600.0
INTERVAL = 6 * HOUR
"""The default of `probe.interval`."""
SHORT = 6
"""Beats between two probes that only some seconds pass before."""
MARGIN = 60.0
"""Seconds before a probe is due in which nothing is asked: a busy machine may take some for a beat."""
TOLERANCE = 3.0
"""Seconds: CLOCK_TOLERANCE of the schedule, and what a beat really takes."""
OTHER_STACK, ASKED = 0.1, 0.03
"""Shares of the probes."""
ATTEMPT = ("probe_ended", "probe_skipped", "probe_failed")
FINE = {*ATTEMPT, "started", "stopped", "config_reloaded", "config_kept", "history_in_memory"}
FINE |= {"history_on_disk", "traces_left_out", "probing_latched_off", "server"}
"""What the daemon may say; anything else is a fault of its own."""


class Soak:
    """A node under soak."""

    def __init__(self, node: Node, *, seed: int, faulty: float) -> None:
        """Begin; the seed decides what happens, `faulty` is the share of probes that a fault meets."""
        self.node, self._faulty = node, faulty
        self.choice = random.Random(seed)  # noqa: S311  # what happens is no secret
        self.stack, self._installed = STACKS[0], ("", "")
        self.found: Counter[tuple[str, str]] = Counter()
        """Probes by the verdict that is right, `fault` where none can be had, and the verdict found."""
        self.by_fault: Counter[tuple[str, str]] = Counter()
        self.wrong: list[str] = []
        """Verdicts that were not the right one, unknown ones without a fault or with a reason that is not it."""
        self.broken: list[str] = []
        """Anything else that was not as promised."""
        self.scheduled = self.asked = self.latched = self.in_memory = 0
        self.begun = node.told.monotonic
        self._began: float | None = None
        self._late = 0.0
        self._phase: float | None = None
        self._errors = 0
        self._runs = int(node.metrics()["probe_runs_total"])
        """An emulated daemon probes as it starts."""
        self._settings = ""
        self.samples: list[tuple[int, Usage]] = []
        node.events()

    @property
    def probes(self) -> int:
        """How many were made."""
        return sum(self.found.values())

    def step(self, passing: float, fault: Fault | None = None) -> list[dict[str, Any]]:
        """Let time pass and the daemon beat; return the attempts to probe that it made."""
        self.node.order(Order(passing=passing))
        if fault and fault.during:
            fault.during(self.node, self.choice)
        self.node.answer()
        events = self.node.events()
        for event in events:
            if event["event"] not in FINE:
                self.broken.append(f"said: {event}"[:2000])
        return [event for event in events if event["event"] in ATTEMPT]

    def turn(self) -> None:
        """Let the time until the next probe pass, and have it made."""
        if self.choice.random() < OTHER_STACK:
            self.stack = self.choice.choice(STACKS)
        fault = self._draw()
        self._install(fault)
        with fault.around(self.node, self.choice):
            asked = fault.name == "none" and self.choice.random() < ASKED
            if not self._approach(stop=asked):
                return
            if asked:
                self.node.process.send_signal(signal.SIGUSR1)
            wait = 0.0 if asked else self.node.told.wait
            began = self.node.told.monotonic + wait
            self._check_time(began, asked=asked)
            attempts = self.step(wait + 0.01, fault)
            if asked and not attempts:
                attempts = self.step(0.01, fault)  # the signal came after that beat's look
            if not attempts:
                attempts = [self.node.wait_event(*ATTEMPT)]
            if len(attempts) != 1:
                self.broken.append(f"{len(attempts)} attempts to probe at once: {attempts}"[:2000])
            self._judge(attempts[0], fault, began, asked=asked)

    def _draw(self) -> Fault:
        if self.choice.random() >= self._faulty:
            return Fault("none")
        usable = [one for one in FAULTS if self.node.own_disk or one.name != "the disk is full"]
        return self.choice.choices(usable, [one.weight for one in usable])[0]

    def _install(self, fault: Fault) -> None:
        """Install the stack, with its fault, and set what a probe of it needs."""
        if (self.stack.emulate, fault.emulated) != self._installed:
            self._installed = self.stack.emulate, fault.emulated
            environ = self.node.environment(*self._installed)
            self.node.order(Order(environ=environ))
            self.node.answer()
        deadline = f"deadline: {4 if fault.hangs else 60}s"
        settings = f"probe: {{{', '.join(filter(None, (deadline, self.stack.settings)))}}}\n"
        if settings != self._settings:
            self._settings = settings
            self.node.config.write_text(settings)
            for _ in range(3):
                self.step(0.5)

    def _approach(self, *, stop: bool) -> bool:
        """Let time pass until a moment before the probe is due; whether none came before that.

        `stop` at some moment on the way there.
        """
        for _ in range(SHORT):
            left = self.node.told.wait - MARGIN
            if left > 0 and self._unasked(min(left, self.choice.uniform(0.5, 60))):
                return False
        for share in (self.choice.random(), *(() if stop else (1.0,))):
            left = self.node.told.wait - MARGIN
            if left > 0 and self._unasked(left * share):
                return False
        return True

    def _unasked(self, passing: float) -> bool:
        """Let time pass in which nothing is due; whether a probe came all the same."""
        attempts = self.step(passing)
        if attempts:
            self.broken.append(f"probed before it was due: {attempts}"[:2000])
            self._began = None
            self._runs += sum(attempt["event"] == "probe_ended" for attempt in attempts)
        return bool(attempts)

    def _check_time(self, began: float, *, asked: bool) -> None:
        """Hold what the schedule says against a clock of our own and the grid."""
        told = self.node.told
        if self._began is not None:
            since = began - self._began
            if not asked and since < INTERVAL / 2 - TOLERANCE:
                self.broken.append(f"a scheduled probe {since:.0f} s after the last")
            if since > INTERVAL * 1.5 + TOLERANCE + self._late:
                self.broken.append(f"no probe for {since:.0f} s")
        if asked or self._late or self._began is None:
            return
        phase = (told.wall + told.wait) % INTERVAL
        self._phase = phase if self._phase is None else self._phase
        off = (phase - self._phase + INTERVAL / 2) % INTERVAL - INTERVAL / 2
        if abs(off) > TOLERANCE:
            self.broken.append(f"a probe {off:.0f} s beside the grid")

    def _judge(self, event: dict[str, Any], fault: Fault, began: float, *, asked: bool) -> None:
        if event["event"] == "probe_skipped" and fault.skip == event["reason"]:
            self.by_fault[fault.name, f"skipped: {event['reason']}"] += 1
            self._late += 600
            return
        if event["event"] != "probe_ended" or fault.skip:
            self.broken.append(f"{fault.name}: {event}"[:2000])
            self._late += 600
            return
        self._began, self._late = began, 0.0
        self._runs += 1
        self.asked, self.scheduled = self.asked + asked, self.scheduled + (not asked)
        right = "fault" if fault.unknown else self.stack.verdict
        self.found[right, event["verdict"]] += 1
        self.by_fault[fault.name, event["verdict"]] += 1
        if not self._good(event, fault):
            self.wrong.append(f"{self.stack.name}, {fault.name}: {event}"[:2000])
        self._check_memory(event)
        self._check_latch(fault)

    def _good(self, event: dict[str, Any], fault: Fault) -> bool:
        if event["verdict"] == "unknown":
            return as_told(fault, event["reason"])
        return event["verdict"] == self.stack.verdict and not fault.unknown

    def _check_memory(self, event: dict[str, Any]) -> None:
        metrics = self.node.metrics()
        name = 'verdict{{evidence="probe",stack="{}",verdict="{}"}}'
        if metrics.get(name.format(event["stack"], event["verdict"])) != 1:
            self.broken.append(f"not exported: {event}"[:2000])
        if metrics["probe_runs_total"] != self._runs:
            self.broken.append(f"{metrics['probe_runs_total']} runs exported after {self._runs}")
        self.in_memory += metrics["history_in_memory"] == 1
        (row,) = msgspec.json.decode(self.node.get("/api/v1/probes?limit=1"))["probes"]
        if (row["verdict"], row["reason"]) != (event["verdict"], event["reason"]):
            self.broken.append(f"remembered: {row}, found: {event}"[:2000])

    def _check_latch(self, fault: Fault) -> None:
        """Two device errors in a row latch probing off, nothing else does; an operator unlatches."""
        self._errors = self._errors + 1 if fault.device_error else 0
        latch = self.node.state / "probe-latch.json"
        off = b'"latched":"' in latch.read_bytes() if latch.exists() else False
        if off != (self._errors >= 2):
            self.broken.append(f"{self._errors} device errors in a row, latched: {off}")
        if off:
            self.latched += 1
            latch.unlink()
            self._errors = 0

    def sample(self) -> None:
        """Look at what is held, the daemon at rest; and at its pages, as people do."""
        for path in ("/", "/explain", "/api/v1/status", "/api/v1/probes?limit=50"):
            self.node.get(path)
        self.step(3700)  # upkeep, which tries the disk again
        self.step(0.5)
        if self.node.metrics()["history_in_memory"]:
            self.broken.append("the history stays in memory")
        best = self.node.usage()
        for _ in range(20):  # a look at /proc or a connection may just be ending
            self.step(0.1)
            best = Usage(*map(min, best, self.node.usage()))
        self.samples.append((self.probes, best))
