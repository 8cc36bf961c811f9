"""The loop of `capture-canary k8s`: look at what the daemon says, do what is asked, give signs of life."""

import time
from typing import Any

from capture_canary.kubernetes.exchange import BEAT, Answer, Exchange, Life, Request, Standing
from capture_canary.kubernetes.feature import Caller
from capture_canary.kubernetes.jobs import Flight, Jobs
from capture_canary.kubernetes.node import NodeCondition, VerdictEvents
from capture_canary.logging import get_logger

LOOK = 1.0
"""Seconds between two looks at the folder."""
ASK = 5.0
"""Seconds between two looks at a Job."""
SHOW = 5.0
"""Seconds between two looks at what the node's object should say."""
GRACE = 120.0
"""Seconds beyond a Job's deadline until it is given up unseen."""


class Loop:
    """Runs until stopped; holds one request at most."""

    def __init__(
        self,
        exchange: Exchange,
        *,
        jobs: Jobs | None = None,
        condition: NodeCondition | None = None,
        events: VerdictEvents | None = None,
    ) -> None:
        """Bind to what is on."""
        self._exchange = exchange
        self._jobs = jobs
        self._condition = condition
        self._events = events
        self._callers = {
            "jobs": Caller("jobs"),
            "node_condition": Caller("node_condition"),
            "events": Caller("events"),
        }
        self._flight: Flight | None = None
        self._over: Flight | None = None
        """A Job that was answered and is still to be deleted."""
        self._next: dict[str, float] = {"ask": 0.0, "show": 0.0, "beat": 0.0}
        self.stopping = False
        """A signal sets this: an Event would take a lock that the interrupted code may hold."""
        self._log: Any = get_logger("k8s")

    def run(self) -> None:
        """Look until stopped."""
        while not self.stopping:
            self.step()
            time.sleep(LOOK)

    def step(self) -> None:
        """Look once."""
        try:
            if self._jobs is not None:
                self._ask(self._jobs)
            if self._is_time("show", SHOW):
                self._show()
            if self._is_time("beat", BEAT):
                self._exchange.write(self._life())
        except OSError as error:  # a full disk: the daemon sees no sign of life, and says so
            self._log.warning("folder_failed", why=str(error))

    def _is_time(self, what: str, every: float) -> bool:
        now = time.monotonic()
        if now < self._next[what]:
            return False
        self._next[what] = now + every
        return True

    def _ask(self, jobs: Jobs) -> None:
        caller = self._callers["jobs"]
        if self._over is not None and not caller.waiting:
            caller.call(lambda: self._delete(jobs))
        if self._flight is not None:
            if self._is_time("ask", ASK):
                self._follow(jobs, self._flight)
            return
        request = self._exchange.read(Request)
        if request is None or self._answered(request):
            return
        why = caller.call(lambda: self._took(jobs.begin(request)))
        if why is not None:
            self._answer(Answer(id=request.id, refusal="kubernetes", detail=why[:300]))

    def _follow(self, jobs: Jobs, flight: Flight) -> None:
        self._callers["jobs"].call(lambda: self._took(jobs.look(flight)))
        if self._flight is not None and time.monotonic() - flight.since > jobs.deadline + GRACE:
            detail = "the API server did not say what came of the Job"
            self._took(Answer(id=flight.request, refusal="kubernetes", detail=detail))

    def _took(self, came: Flight | Answer) -> None:
        """Take over what `begin` and `look` return."""
        if isinstance(came, Flight):
            self._flight = came
            return
        self._over, self._flight = self._flight, None
        self._answer(came)

    def _delete(self, jobs: Jobs) -> None:
        if self._over is not None:
            jobs.end(self._over)
        self._over = None

    def _answer(self, answer: Answer) -> None:
        self._exchange.write(answer)
        came = answer.refusal or answer.failure or "result"
        self._log.info("answered", request=answer.id, came=came, detail=answer.detail)

    def _answered(self, request: Request) -> bool:
        answer = self._exchange.read(Answer)
        return answer is not None and answer.id == request.id

    def _show(self) -> None:
        standing = self._exchange.read(Standing)
        if standing is None:
            return
        now = time.time()
        if (condition := self._condition) is not None:
            self._callers["node_condition"].call(lambda: condition.show(standing, now))
        if (events := self._events) is not None:
            self._callers["events"].call(lambda: events.show(standing, now))

    def _life(self) -> Life:
        asked = {
            "jobs": self._jobs, "node_condition": self._condition, "events": self._events,
        }  # fmt: skip
        on = [caller for name, caller in self._callers.items() if asked[name] is not None]
        return Life(
            at=time.time(),
            off={one.name: one.off for one in on if one.off is not None},
            failures={one.name: one.failures for one in on},
        )
