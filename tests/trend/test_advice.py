"""What an operator is told to do."""

from typing import get_args

import pytest

from capture_canary.model import Cause, Growth, Impact, Judgement, VerdictName
from capture_canary.trend.advice import remedy


def judgement(verdict: VerdictName = "degraded", cause: Cause | None = None, seconds: float = 60.0):
    return Judgement(
        verdict=verdict,
        cause=cause,
        reason="because",
        impact=Impact(seconds_per_load=seconds, graphs=35),
        matches_law=None,
        growth=Growth(copies=None, seconds=None, series=None),
    )


@pytest.mark.parametrize("cause", get_args(Cause))
def test_every_cause_has_a_remedy(cause):
    assert len(remedy(judgement(cause=cause), soc="a3", mode="AI_CPU")) > 40


def test_aiv_is_never_advised_without_its_warning():
    for cause in get_args(Cause):
        text = remedy(judgement(cause=cause), soc="a3", mode=None)
        assert ("EXPANSION_MODE=AIV" in text) <= ("validate AIV" in text)
    assert "validate AIV" in remedy(judgement(cause="aicpu_resource_list"), soc="a3", mode=None)


def test_a2_goes_back_to_its_default():
    text = remedy(judgement(cause="aicpu_resource_list"), soc="a2", mode="AI_CPU")
    assert text.startswith("Unset HCCL_OP_EXPANSION_MODE (AI_CPU)")
    assert "AIV" not in text


def test_nobody_is_hurried_for_a_negligible_impact():
    text = remedy(judgement(cause="aicpu_resource_list", seconds=0.2), soc="a3", mode=None)
    assert "when it suits" in text


def test_other_verdicts():
    assert remedy(judgement("healthy"), soc="a3", mode=None) == ""
    assert "Keep AIV" in remedy(judgement("mitigated"), soc="a3", mode="AIV")
    assert "probe again" in remedy(judgement("unknown"), soc=None, mode=None, hcomm="8.5.0")
