"""The table of docs/verdict.md: each row a function of the case, asked in its order; the first that answers wins."""

from collections.abc import Callable
from typing import NamedTuple

from capture_canary.model import ArmName, Cause, TimeTest, VerdictName
from capture_canary.stack.exposure import mitigates
from capture_canary.trend import growth
from capture_canary.trend.case import Case

REPEAT_SECONDS = 3600.0
"""How far apart two probes must find the same growth of time before time alone convicts."""


class Finding(NamedTuple):
    """What a row of the table says."""

    verdict: VerdictName
    cause: Cause | None
    reason: str


def nothing_measured(case: Case) -> Finding | None:
    """Row 1: nothing, or a rank missing."""
    missing = case.missing_ranks()
    if case.own and not missing:
        return None
    if case.control is not None and 0 in case.control:
        return None  # row 2 knows why
    failure = case.arm_failures.get("as_configured")
    others = sorted({one.arm for one in case.series if one.arm != "as_configured"})
    if not case.own and others and failure is None:
        ran = " and ".join(others)
        return Finding("unknown", None, f"only {ran} ran: a verdict is about the arm as_configured")
    what = (
        "nothing was captured"
        if len(missing) == case.ranks or not case.own
        else f"of {case.ranks} ranks no capture came from {', '.join(map(str, missing[:8]))}"
    )
    return Finding("unknown", None, f"{what}: {failure}" if failure else what)


def tracer_blind(case: Case) -> Finding | None:
    """Row 2: copies were to be counted, but an eager collective that must make some showed none."""
    if not case.copies_expected:
        return None
    seen = [copies for copies in case.control or () if copies]
    if case.control and len(seen) == len(case.control) and len(seen) >= case.ranks:
        return None
    said = f"was seen by {len(seen)} of {max(case.ranks, len(case.control or ()))} ranks"
    return Finding(
        "unknown",
        "tracer_blind",
        f"H2D copies cannot be counted: the eager AI_CPU collective that must make some {said}, "
        "so that no copies in the captures means nothing",
    )


def mode_not_effective(case: Case) -> Finding | None:
    """Row 3: copies grow although the mode in force should make none."""
    mode = case.mode or case.mode_in_force
    if not case.copies_grow or not mitigates(mode):
        return None
    return Finding(
        "degraded",
        "mode_not_effective",
        f"{_copies(case)} although the expansion mode is {mode} ({_source(case)})",
    )


def regression(case: Case) -> Finding | None:
    """Row 4: copies grow with an hcomm that should be free of it."""
    if not case.copies_grow or not case.fixed:
        return None
    return Finding(
        "degraded", "regression", f"{_copies(case)} although hcomm {case.hcomm} should have the fix"
    )


def resource_list(case: Case) -> Finding | None:
    """Row 5: copies grow, and AIV stops it; or AIV could not be tried and the growth law is met exactly."""
    if not case.copies_grow:
        return None
    if case.flat("aiv", case.growing_kinds) and "aiv" not in case.arm_failures:
        why = "with AIV it makes none more"
    elif not case.arm("aiv") and "aiv" not in case.arm_failures and case.matches_law:
        why = "the counts meet the law of HCCL's AICPU resource list exactly"
    else:
        return None
    return Finding("degraded", "aicpu_resource_list", f"{_copies(case)}; {why}")


def copies_unattributed(case: Case) -> Finding | None:
    """Row 6: copies grow, and the AIV arm does not say why."""
    if not case.copies_grow:
        return None
    failure = case.arm_failures.get("aiv")
    if failure:
        why = f"with AIV the probe failed: {failure}"
    elif growth.growing(case.arm("aiv")):
        why = "with AIV they grow too"
    elif case.arm("aiv"):
        gaps = case.shortfalls("aiv", case.growing_kinds) or ["too little was measured"]
        why = f"with AIV {gaps[0]}"
    else:
        why = "AIV was not tried, and the counts are not those of HCCL's AICPU resource list"
    return Finding("degraded", "copies_unattributed", f"{_copies(case)}; {why}")


def other_growth(case: Case) -> Finding | None:
    """Row 7: time grows beside flat controls, copies do not."""
    grown = case.time_growth
    if grown is None or not grown.paired or not case.flat("as_configured", case.kinds):
        return None
    return Finding("degraded", "other", f"{_seconds(grown)}, while the H2D copies stay the same")


def time_only(case: Case) -> Finding | None:
    """Row 8: time grows beside flat controls, copies were not counted, and an earlier probe found the same."""
    grown = case.time_growth
    if grown is None or not grown.paired or case.copies_expected or case.evidence == "log":
        return None
    if case.repeated_after is None or case.repeated_after < REPEAT_SECONDS:
        return None
    return Finding(
        "degraded",
        "time_only",
        f"{_seconds(grown)}, as {case.repeated_after / 3600:.1f} h ago; copies were not counted",
    )


def suspect(case: Case) -> Finding | None:
    """Row 9: time rises, and that is all that is known."""
    grown = case.time_growth
    if grown is None:
        return None
    why = (
        "without counted copies that is a suspicion, and becomes a verdict when a probe an hour later finds it again"
        if grown.paired
        else "without control captures beside, a machine that slows down looks the same"
    )
    return Finding("unknown", "suspect", f"{_seconds(grown)}; {why}")


def mitigated(case: Case) -> Finding | None:
    """Row 10: flat, in a mode that keeps collectives off the AICPU, on a stack that would grow without it."""
    if not _flat(case) or not mitigates(case.mode_in_force) or case.exposure.exposed is False:
        return None
    set_by = f"{case.mode_in_force} ({_source(case)}) keeps captures flat"
    without = case.arm("ai_cpu")
    if growth.growing(without):
        steps = growth.worst(without, arm="ai_cpu").copies
        added = f"{steps.estimate:g} " if steps else ""
        return Finding(
            "mitigated",
            None,
            f"{set_by}; in AI_CPU mode each further capture makes {added}more H2D copies",
        )
    if case.exposure.exposed and not _flat_arm(case, "ai_cpu"):
        failure = case.arm_failures.get("ai_cpu", "AI_CPU mode was not tried")
        return Finding(
            "mitigated", None, f"{set_by}; unverified ({failure}), but {case.exposure.reason}"
        )
    return None


def healthy(case: Case) -> Finding | None:
    """Row 11: flat in every kind of series and on every rank."""
    if not _flat(case):
        return None
    kinds = len(case.kinds)
    captures = min(len(one.captures) for one in case.own)
    exposed = case.exposure
    aside = f"; not exposed: {exposed.reason}" if exposed.exposed is False else ""
    return Finding(
        "healthy",
        None,
        f"a further capture makes no more H2D copies, over {captures} captures or more of each of {kinds} kinds "
        f"of series on {case.ranks} ranks{aside}",
    )


def too_little(case: Case) -> Finding:
    """Row 1 again, for what is asked of a flat measurement only: growth shows in less."""
    failure = case.arm_failures.get("as_configured")
    if failure:
        return Finding("unknown", None, f"the measurement ended early: {failure}")
    if not case.copies_expected or case.evidence == "log":
        said = f"; {case.time.reason}" if case.time else ""
        return Finding(
            "unknown",
            None,
            f"H2D copies were not counted, and flat times alone do not prove health{said}",
        )
    gaps = case.shortfalls("as_configured", case.kinds) or ["nothing was captured"]
    more = f" (and {len(gaps) - 1} more)" if len(gaps) > 1 else ""
    return Finding("unknown", None, f"too little was measured: {gaps[0]}{more}")


ROWS: tuple[Callable[[Case], Finding | None], ...] = (
    nothing_measured,
    tracer_blind,
    mode_not_effective,
    regression,
    resource_list,
    copies_unattributed,
    other_growth,
    time_only,
    suspect,
    mitigated,
    healthy,
    too_little,
)
"""The rows in their order; the last always answers."""


def _flat(case: Case) -> bool:
    return case.copies_expected and case.evidence != "log" and _flat_arm(case, "as_configured")


def _flat_arm(case: Case, name: ArmName) -> bool:
    return name not in case.arm_failures and case.flat(name, case.kinds)


def _source(case: Case) -> str:
    if case.configured_mode:
        return case.mode_source
    return "as HCCL read it" if case.mode else "the SoC's default"


def _copies(case: Case) -> str:
    """The growth of copies in words, with the counts of the worst series."""
    worst = growth.worst(case.series)
    if worst.copies is None or worst.series is None:
        return "captures make more and more H2D copies"
    series = case.series[worst.series]
    counts = [point.copies for point in growth.counted(series)]
    shown = [*counts[:2], "…", counts[-1]] if counts[3:] else counts
    return (
        f"each further capture makes {worst.copies.estimate:g} more H2D copies "
        f"({'→'.join(map(str, shown))} from capture 2 on; {series.collective}, graphs {series.graphs}, "
        f"rank {series.rank})"
    )


def _seconds(test: TimeTest) -> str:
    """The growth of time in words."""
    if test.growth is None:
        return "captures take longer and longer"
    return (
        f"each further capture takes {test.growth.estimate * 1e3:.3g} ms longer (at least "
        f"{test.growth.lower * 1e3:.3g} ms with 97.5 %, over {test.n} captures)"
    )
