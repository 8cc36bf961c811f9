"""Checks of assumptions that rest on what a short probe measured."""

from collections.abc import Callable

from capture_canary.doctor.answer import Answer
from capture_canary.doctor.evidence import Evidence, Measured
from capture_canary.model import ArmName
from capture_canary.stack import versions
from capture_canary.stack.exposure import FIXED, default_mode, family, mitigates
from capture_canary.stack.npus import Npus
from capture_canary.trend.growth import copies_trend, matches_law

BUFFERS = 2
"""Buffers that a communicator takes, each of `buffer_mb`."""
CONTEXT_MB = 4096
"""HBM that contexts and the rest of a probe may take besides."""
PORTS = range(60000, 60016)
MICROSECONDS = (0.2, 200.0)
"""A copy of a list's node, by what its count costs a load: a few µs."""


def captures_seen(found: Evidence) -> Answer:
    """Every capture was recorded."""
    return _measured(found, _seen)


def _seen(measured: Measured) -> Answer:
    captures = [one for one in measured.captures("as_configured") if one.outcome == "ok"]
    counted = [one for one in captures if one.h2d_copies is not None and one.collectives]
    if not captures:
        return Answer(None, measured.failure or "nothing was captured")
    return Answer(
        len(counted) == len(captures), f"{len(counted)} of {len(captures)} captures were recorded"
    )


def copies_seen(found: Evidence) -> Answer:
    """The positive control's copies were seen."""
    return _measured(found, _control)


def _control(measured: Measured) -> Answer:
    control = measured.report.control
    if control is None and not measured.captures("as_configured"):
        return Answer(None, measured.failure or "nothing was captured")
    return Answer(
        bool(control), f"an eager AI_CPU collective made {control or 'no'} copies that were seen"
    )


def unset_mode(found: Evidence) -> Answer:
    """Without a mode, copies are made where the SoC's default is AI_CPU."""
    soc = found.findings.node.soc

    def check(measured: Measured) -> Answer:
        mode = measured.report.mode
        default = default_mode(soc)
        if measured.settings.mode is not None or default is None or family(soc) == "950":
            return Answer(None, f"the mode is set, or {soc} was not analysed")
        copies = sum(one.h2d_copies or 0 for one in measured.captures("as_configured")[1:])
        expected = not mitigates(default)
        return Answer((copies > 0) == expected, f"unset ({mode}): {copies} copies in captures")

    return _measured(found, check)


def aiv(found: Evidence) -> Answer:
    """With AIV no copy is made."""
    return _measured(found, lambda measured: _without_copies(measured, "aiv"))


def _without_copies(measured: Measured, arm: ArmName) -> Answer:
    captures = [one for one in measured.captures(arm) if one.h2d_copies is not None]
    if not captures:
        return Answer(None, measured.failure or f"the arm {arm} had nothing to capture")
    copies = sum(one.h2d_copies or 0 for one in captures)
    return Answer(copies == 0, f"{len(captures)} captures with AIV made {copies} copies")


def law(found: Evidence) -> Answer:
    """Copies grow as the law says, where the version says they do."""
    version = versions.parse(found.version("hcomm"))

    def check(measured: Measured) -> Answer:
        series = measured.series("ai_cpu")
        grown = [one for one in series if copies_trend(one) == "growing"]
        if version is None or not any(copies_trend(one) for one in series):
            return Answer(None, measured.failure or "hcomm's version or its copies are not known")
        said = (
            f"hcomm {found.version('hcomm')}: copies grow in {len(grown)} of {len(series)} series"
        )
        if version >= FIXED or not grown:
            return Answer(bool(grown) == (version < FIXED), said)
        met = [one for one in grown if matches_law(one)]
        return Answer(len(met) == len(grown), f"{said}, the law is met exactly in {len(met)}")

    return _measured(found, check)


def copy_time(found: Evidence) -> Answer:
    """One copy takes what is reckoned with."""
    return _measured(found, _one_copy)


def _one_copy(measured: Measured) -> Answer:
    captures = [one for one in measured.captures("ai_cpu") if one.h2d_copies and one.copy_seconds]
    if not captures:
        return Answer(None, measured.failure or "no copy was timed")
    each = sorted((one.copy_seconds or 0) / (one.h2d_copies or 1) * 1e6 for one in captures)
    middle = each[len(each) // 2]
    return Answer(
        MICROSECONDS[0] <= middle <= MICROSECONDS[1], f"one H2D copy takes {middle:.2f} µs"
    )


def hbm(found: Evidence) -> Answer:
    """A communicator took two buffers."""
    before = found.findings.node.npus

    def check(measured: Measured) -> Answer:
        taken = _taken(before, measured.during, measured.devices)
        if not taken:
            return Answer(None, "HBM was not seen while the probe ran")
        least, most = BUFFERS * measured.settings.buffer_mb, max(taken)
        said = f"{most} MB a chip for buffers of {BUFFERS} x {measured.settings.buffer_mb} MB"
        if most < least:  # npu-smi is slow, a series short
            return Answer(None, f"{said}: the communicator may have been closed by then")
        return Answer(most <= least + CONTEXT_MB, said)

    return _measured(found, check)


def given_back(found: Evidence) -> Answer:
    """HBM is free again."""
    before = found.findings.node.npus

    def check(measured: Measured) -> Answer:
        left = _taken(before, measured.after, measured.devices)
        if not left:
            return Answer(None, "HBM was not seen after the probe")
        return Answer(max(left) <= 64, f"{max(left)} MB more in use than before")  # noqa: PLR2004  # the driver's rounding

    return _measured(found, check)


def _taken(before: Npus | None, then: Npus | None, devices: tuple[int, ...]) -> list[int]:
    """MB more in use on each chip than before."""
    used = [
        {chip.phy_id: chip.hbm_used_mb for chip in npus.chips if chip.hbm_used_mb is not None}
        for npus in (before, then)
        if npus
    ]
    if len(used) < 2:  # noqa: PLR2004  # one look is missing
        return []
    return [used[1][n] - used[0][n] for n in devices if n in used[0] and n in used[1]]


def ports(found: Evidence) -> Answer:
    """The servers' ports were left alone."""

    def check(measured: Measured) -> Answer:
        if not measured.ports:
            return Answer(None, "no port was seen to be opened")
        taken = sorted(measured.ports & set(PORTS))
        return Answer(not taken, f"the probe listened on {sorted(measured.ports)[:8]}")

    return _measured(found, check)


def streams(found: Evidence) -> Answer:
    """There were streams enough."""

    def check(measured: Measured) -> Answer:
        graphs = sum(len(one.captures) for one in measured.series("as_configured"))
        failed = any(one.outcome == "failed" for one in measured.captures("as_configured"))
        if failed or (measured.failure and "207008" in measured.failure):
            return Answer(
                False, f"a probe of {graphs} graphs ran out of streams: {measured.failure}"
            )
        return Answer(
            None, f"{graphs} graphs fitted; how many would, only servers' streams could tell"
        )

    return _measured(found, check)


def _measured(found: Evidence, check: Callable[[Measured], Answer]) -> Answer:
    return Answer(None, found.why_not) if found.measured is None else check(found.measured)
