"""Series and reports as real probes make them, for the tests of whatever takes them."""

from capture_canary.model import (
    ArmName,
    Capture,
    Cause,
    Estimate,
    Fact,
    GraphsFate,
    Growth,
    Impact,
    Report,
    Series,
    Stack,
    VerdictName,
)
from capture_canary.trend import law
from capture_canary.trend.case import PROBE_KINDS

SECONDS_A_COPY = 3.2e-6
SETUP_SECONDS = 0.0021
LIST_BYTES = 11_984
SIZES = (1024, 2048, 4096)


def make_series(
    *,
    k: int = 16,
    peers: int = 1,
    captures: int = 6,
    grows: bool = True,
    counted: bool = True,
    arm: ArmName = "as_configured",
    mode: str | None = "AI_CPU",
    collective: str = "AllReduce",
    graphs: GraphsFate = "kept",
    rank: int = 0,
) -> Series:
    """Return the captures of one rank; without growth, none after the first copies anything."""
    made = []
    begin = 81_604_000_000_000
    for n in range(1, captures + 1):
        copies = law.growing(k, peers, n) if grows else 0
        inside = copies * SECONDS_A_COPY
        seconds = SETUP_SECONDS + inside * 1.2 + (0.004 if n == 1 else 0.0)
        made.append(
            Capture(
                order=n,
                round=(n - 1) // len(SIZES),
                shape=SIZES[(n - 1) % len(SIZES)],
                begin_ns=begin,
                seconds=seconds,
                h2d_copies=copies if counted else None,
                h2d_bytes=copies * LIST_BYTES if counted else None,
                copy_seconds=inside if counted else None,
                collectives={collective: k},
            )
        )
        begin += int(seconds * 1e9) + 250_000
    return Series(
        arm=arm,
        mode=mode,
        collective=collective,
        graphs=graphs,
        collectives=k,
        rank=rank,
        device=rank,
        peers=peers,
        captures=made,
    )


def make_stack(cann: str = "8.5.0", soc: str = "a3", **more: str) -> Stack:
    """Return a stack whose versions were read where CANN keeps them."""
    where = f"/usr/local/Ascend/cann-{cann}/aarch64-linux"
    facts = {"cann": cann, "hcomm": cann, "driver": "25.5.0", "soc": soc, **more}
    sources = {"driver": "/usr/local/Ascend/driver/version.info", "soc": "aclrtGetSocName"}
    return {
        name: Fact(value=value, source=sources.get(name, f"{where}/{name}_version.info"))
        for name, value in facts.items()
    }


def _estimate(value: float, n: int, method: str, spread: float = 0.0) -> Estimate:
    return Estimate(
        estimate=value, lower=value * (1 - spread), upper=value * (1 + spread), n=n, method=method
    )


def make_report(
    verdict: VerdictName = "degraded",
    *,
    cause: Cause | None = None,
    cann: str = "8.5.0",
    k: int = 16,
    peers: int = 1,
    captures: int = 6,
    ranks: int = 2,
    emulated: bool = True,
    reason: str | None = None,
    stack: Stack | None = None,
) -> Report:
    """Return a probe of AllReduce and AllGather, kept and destroyed, with an arm to compare."""
    grows = verdict == "degraded"
    other: ArmName = "ai_cpu" if verdict == "mitigated" else "aiv"
    mode = "AIV" if verdict == "mitigated" else "AI_CPU"
    arms: list[tuple[ArmName, str, bool]] = [
        ("as_configured", mode, grows),
        (other, "AI_CPU" if other == "ai_cpu" else "AIV", verdict == "mitigated"),
    ]
    series = [
        make_series(
            k=k,
            peers=peers,
            captures=captures,
            grows=arm_grows,
            arm=arm,
            mode=arm_mode,
            collective=collective,
            graphs=fate,
            rank=rank,
        )
        for arm, arm_mode, arm_grows in arms
        for collective, fate in PROBE_KINDS
        for rank in range(ranks)
    ]
    if verdict == "unknown":
        series = []
    slope = float(law.slope(k, peers)) if grows else 0.0
    judged = captures - 1
    return Report(
        emulated=emulated,
        verdict=verdict,
        cause=cause or ("aicpu_resource_list" if grows else None),
        reason=reason or _REASONS[verdict],
        impact=Impact(seconds_per_load=slope * 35 * 35 / 2 * SECONDS_A_COPY, graphs=35)
        if verdict != "unknown"
        else None,
        mode=mode,
        mode_source="default of the SoC",
        matches_law=True if grows else None,
        growth=Growth(
            copies=_estimate(slope, judged, "integer-steps"),
            seconds=_estimate(slope * SECONDS_A_COPY * 1.2, judged, "theil-sen", 0.08),
            series=0,
        )
        if series
        else Growth(copies=None, seconds=None, series=None),
        stack=make_stack(cann) if stack is None else stack,
        control=5 if series else None,
        series=series,
    )


_REASONS: dict[VerdictName, str] = {
    "degraded": "each further capture makes 256 H2D copies more; with AIV it makes none more",
    "mitigated": "copies stay flat with AIV in force; with AI_CPU they grow",
    "healthy": "copies and time stay flat over 6 captures",
    "unknown": "no NPU is free: device 0 is held by another process",
}
