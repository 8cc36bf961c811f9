"""What metrics and pages are made of: one immutable object, replaced whole when something happened."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Literal

import msgspec

from capture_canary.model import Capture, Evidence, Report, Stack
from capture_canary.stack.identity import stack_id
from capture_canary.stack.servers import Servers
from capture_canary.trend.settle import Settled, settle

FailureReason = Literal[
    "start", "timeout", "child", "yielded", "tracer_blind", "too_little", "other"
]
"""Why a probe ended without a verdict: it could not start, hung, died or wrote nonsense, gave way to a process that
came onto its NPUs, could not count copies, or measured too little."""

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds, in s, of the histogram of capture times: from an emulated graph to a large model's."""


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Counters since the start of the process."""

    runs: int = 0
    failures: dict[str, int] = {}
    skips: dict[str, int] = {}
    """By the gate's reason; give 0 for each that can come."""
    device_seconds: float = 0.0
    captures: int = 0
    copies: dict[Evidence, int] = {}
    copy_seconds: dict[Evidence, float] = {}
    capture_buckets: tuple[int, ...] = (0,) * (len(BUCKETS) + 1)
    """Captures by the bucket that their time falls in; the last one is unbounded."""
    capture_seconds: float = 0.0


class State(msgspec.Struct, frozen=True, kw_only=True):
    """All that is exported."""

    version: str
    emulated: bool
    stack: Stack
    """What runs here now; a report has the stack that it measured."""
    evidence: tuple[Evidence, ...] = ("probe",)
    """Where verdicts are to come from: each is `unknown` until the first has come."""
    reports: dict[Evidence, Report] = {}
    """The last of each; of traced servers with several stacks, the worst."""
    further: tuple[Report, ...] = ()
    """Of traced servers: the report of each other stack on this node."""
    settled: dict[Evidence, Settled] = {}
    """What alerts go by."""
    settled_further: tuple[Settled, ...] = ()
    """The same of the further stacks."""
    servers: Servers = Servers()
    """What serves on this node."""
    about_servers: bool | None = None
    """Whether what a probe of ours finds holds for them."""
    totals: Totals = Totals()
    last_run: float | None = None
    """End of the last probe, Unix time."""
    last_success: float | None = None
    """End of the last one that came to a verdict."""
    last_seconds: float | None = None
    """How long the last one took."""
    config_ok: bool = True

    @property
    def sources(self) -> list[Evidence]:
        """The kinds of evidence to speak of: those to come and those that came."""
        came: tuple[Evidence, ...] = tuple(self.reports)
        return list(dict.fromkeys(self.evidence + came))

    @property
    def judged(self) -> list[tuple[Evidence, Report]]:
        """Every report that a verdict in force rests on: one for each stack and kind of evidence."""
        return [*self.reports.items(), *(("trace", report) for report in self.further)]

    def without_traces(self) -> "State":
        """Return the state once no traced server is left."""
        reports = {kind: report for kind, report in self.reports.items() if kind != "trace"}
        settled = {kind: one for kind, one in self.settled.items() if kind != "trace"}
        return msgspec.structs.replace(
            self, reports=reports, settled=settled, further=(), settled_further=()
        )

    def after_traces(
        self, reports: Sequence[Report], *, ended: float, captures: Sequence[Capture]
    ) -> "State":
        """Return the state once traced servers were judged: one report for each stack, the worst first."""
        before = (self.settled.get("trace"), *self.settled_further)
        known = {one.stack: one for one in before if one}
        first, *others = (
            settle(known.get(stack), report, stack=stack, evidence="trace")
            for report in reports
            for stack in [stack_id(report.stack)]
        )
        after = self.after(reports[0], evidence="trace", ended=ended, captures=captures)
        return msgspec.structs.replace(
            after,
            further=tuple(reports[1:]),
            settled={**after.settled, "trace": first},
            settled_further=tuple(others),
        )

    def after(
        self,
        report: Report,
        *,
        evidence: Evidence,
        ended: float,
        seconds: float = 0.0,
        devices: int = 0,
        failure: FailureReason = "other",
        captures: Sequence[Capture] | None = None,
    ) -> "State":
        """Return the state once a report has come.

        Args:
            report: the report.
            evidence: where it comes from.
            ended: when, Unix time.
            seconds: how long a probe took.
            devices: NPUs that a probe held.
            failure: why there is no verdict; only looked at where there is none.
            captures: those not counted before; None: all of the report's.
        """
        probe = evidence == "probe"
        known = report.verdict != "unknown"
        return msgspec.structs.replace(
            self,
            reports={**self.reports, evidence: report},
            settled=with_settled(self.settled, report, evidence),
            totals=_count(
                self.totals,
                report,
                evidence=evidence,
                device_seconds=seconds * devices,
                failure=failure,
                captures=captures,
            ),
            last_run=ended if probe else self.last_run,
            last_success=ended if probe and known else self.last_success,
            last_seconds=seconds if probe else self.last_seconds,
        )

    def with_config(self, *, ok: bool) -> "State":
        """Return the state once the settings were reread."""
        return msgspec.structs.replace(self, config_ok=ok)

    def with_stack(self, stack: Stack) -> "State":
        """Return the state once more is known of what runs here."""
        return msgspec.structs.replace(self, stack=stack)

    def after_skip(self, reason: str) -> "State":
        """Return the state once a probe was not run."""
        skips = plus(self.totals.skips, reason)
        return msgspec.structs.replace(
            self, totals=msgspec.structs.replace(self.totals, skips=skips)
        )

    def after_failure(self, reason: FailureReason) -> "State":
        """Return the state once an attempt broke off without a report."""
        failures = plus(self.totals.failures, reason)
        return msgspec.structs.replace(
            self, totals=msgspec.structs.replace(self.totals, failures=failures)
        )


def with_settled(
    settled: Mapping[Evidence, Settled], report: Report, evidence: Evidence
) -> dict[Evidence, Settled]:
    """Return what is settled of each kind of evidence once a report has come."""
    found = settle(settled.get(evidence), report, stack=stack_id(report.stack), evidence=evidence)
    return {**settled, evidence: found}


def cumulative(buckets: Sequence[int]) -> list[tuple[str, float]]:
    """Return the buckets as Prometheus wants them: upper bound and how many fell under it."""
    bounds = [*(repr(bound) for bound in BUCKETS), "+Inf"]
    return [(bound, float(n)) for bound, n in zip(bounds, accumulate(buckets), strict=True)]


def plus(counts: Mapping[str, int], key: str) -> dict[str, int]:
    """Return the counts with one more of this key."""
    return {**counts, key: counts.get(key, 0) + 1}


def _count(
    totals: Totals,
    report: Report,
    *,
    evidence: Evidence,
    device_seconds: float,
    failure: str,
    captures: Sequence[Capture] | None,
) -> Totals:
    if captures is None:
        captures = [capture for series in report.series for capture in series.captures]
    buckets = list(totals.capture_buckets)
    for capture in captures:
        buckets[sum(capture.seconds > bound for bound in BUCKETS)] += 1
    copies = sum(capture.h2d_copies or 0 for capture in captures)
    seconds = sum(capture.copy_seconds or 0.0 for capture in captures)
    probe = evidence == "probe"
    failed = probe and report.verdict == "unknown"
    return Totals(
        runs=totals.runs + probe,
        failures=plus(totals.failures, failure) if failed else totals.failures,
        skips=totals.skips,
        device_seconds=totals.device_seconds + device_seconds,
        captures=totals.captures + (len(captures) if probe else 0),
        copies={**totals.copies, evidence: totals.copies.get(evidence, 0) + copies},
        copy_seconds={
            **totals.copy_seconds,
            evidence: totals.copy_seconds.get(evidence, 0.0) + seconds,
        },
        capture_buckets=tuple(buckets),
        capture_seconds=totals.capture_seconds + sum(capture.seconds for capture in captures),
    )
