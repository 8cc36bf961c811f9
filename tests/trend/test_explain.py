"""How a report came to its verdict: told as it was, or not at all."""

import msgspec
import pytest
from tests.builders import make_report, make_series
from tests.making import arm, capture, grows, none, series

from capture_canary.model import Cause, Judgement, Report, Series, VerdictName
from capture_canary.trend.explain import DEFAULT, series_facts, steps
from capture_canary.trend.report import report_of
from capture_canary.trend.rows import ROWS
from capture_canary.trend.verdict import judge


def reported(
    found: Judgement,
    records: list[Series],
    *,
    mode: str = "AI_CPU",
    source: str = DEFAULT,
    control: int | None = None,
) -> Report:
    return report_of(
        found,
        emulated=True,
        mode=mode,
        mode_source=source,
        stack=make_report().stack,
        control=control,
        series=records,
    )


@pytest.mark.parametrize(
    ("verdict", "row"),
    [
        ("healthy", "healthy"),
        ("degraded", "resource_list"),
        ("mitigated", "mitigated"),
        ("unknown", "nothing_measured"),
    ],
)
def test_the_row_that_decided_says_yes_those_before_no_and_those_after_were_not_asked(
    verdict: VerdictName, row: str
):
    cann = "9.1.0" if verdict == "healthy" else "8.5.0"
    found = steps(make_report(verdict, cann=cann), "probe")
    names = [one.row for one in found]
    place = names.index(row)
    assert names == [one.__name__ for one in ROWS]
    assert [one.answer for one in found] == [False] * place + [True] + [None] * (
        len(ROWS) - place - 1
    )
    assert found[place].detail == make_report(verdict, cann=cann).reason
    assert [one.question for one in found] == [(row.__doc__ or "").splitlines()[0] for row in ROWS]
    assert found[0].question == "Row 1: nothing, or a rank missing."


@pytest.mark.parametrize(("source", "decided"), [("pod spec", ["mitigated"]), (DEFAULT, [])])
def test_a_mode_that_was_set_is_told_from_the_default(source: str, decided: list[str]):
    records = arm("as_configured", none) + arm("ai_cpu", grows)
    found = judge(
        records,
        ranks=2,
        hcomm="8.5.0",
        soc="a3",
        configured_mode="AIV",
        control=[4, 4],
        arm_failures={},
    )
    assert found.verdict == "mitigated"
    report = reported(found, records, mode="AIV", source=source, control=4)
    # By default A3 runs AI_CPU: flat captures would then be healthy.
    assert [one.row for one in steps(report, "probe") if one.answer] == decided


@pytest.mark.parametrize("cause", ["other", "suspect", "mode_not_effective"])
def test_a_report_that_does_not_keep_enough_is_not_explained_wrongly(cause: Cause):
    report = msgspec.structs.replace(make_report("degraded"), cause=cause)
    assert steps(report, "probe") == []


@pytest.mark.parametrize(
    ("repeated", "verdict", "row"),
    [(None, "unknown", "suspect"), (7200.0, "degraded", "time_only")],
)
def test_time_is_told_as_it_was_judged_with_the_floors_and_rounds_of_then(
    repeated: float | None, verdict: str, row: str
):
    # 0.1 ms more a capture: far below the floors by default, and in units of two rounds.
    records = [
        series(
            [
                capture(
                    n + 1,
                    None,
                    round=n // 3,
                    shape=n % 3,
                    seconds=0.01 + 1e-4 * n,
                    control_seconds=0.002,
                )
                for n in range(240)
            ]
        )
    ]
    found = judge(
        records,
        ranks=1,
        hcomm="8.5.0",
        soc="a3",
        configured_mode=None,
        control=None,
        arm_failures={},
        copies_expected=False,
        floor_seconds=0.0,
        floor_ratio=0.0,
        repeated_after=repeated,
        rounds=300,
    )
    assert found.verdict == verdict
    report = reported(found, records)
    told = steps(report, "probe")
    assert [one.row for one in told if one.answer] == [row]
    assert [one.answer for one in told].count(None) == len(ROWS) - 1 - [
        one.row for one in told
    ].index(row)


def test_a_series_says_its_growth_and_what_the_law_foretells():
    found = series_facts(make_series(k=16, peers=3))
    assert (found.trend, found.law_slope, found.matches_law) == ("growing", 768, True)
    assert found.copies is not None
    assert found.copies.estimate == 768
    assert series_facts(make_series(arm="aiv", mode="AIV", grows=False)).law_slope is None
    assert series_facts(make_series(arm="aiv", mode=None, grows=False)).law_slope is None
    assert series_facts(make_series(mode="AIV", grows=False)).law_slope is None
    blank = msgspec.structs.replace(make_series(counted=False), peers=None)
    assert (series_facts(blank).trend, series_facts(blank).law_slope) == ("unknown", None)
