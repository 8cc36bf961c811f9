"""From a judgement to a report: the verdict with all that it rests on."""

from capture_canary.model import Judgement, Report, Series, Stack


def report_of(
    judgement: Judgement,
    *,
    emulated: bool,
    mode: str | None,
    mode_source: str,
    stack: Stack,
    control: int | None,
    series: list[Series],
    seed: int | None = None,
) -> Report:
    """Return the report of a judgement, with what it rests on."""
    return Report(
        emulated=emulated,
        verdict=judgement.verdict,
        cause=judgement.cause,
        reason=judgement.reason,
        impact=judgement.impact,
        mode=mode,
        mode_source=mode_source,
        matches_law=judgement.matches_law,
        growth=judgement.growth,
        stack=stack,
        control=control,
        series=series,
        time=judgement.time,
        seed=seed,
    )
