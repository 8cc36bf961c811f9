"""What an operator is told to do."""

from string import Formatter
from typing import get_args

import pytest

from capture_canary.model import Cause, Growth, Impact, Judgement, VerdictName
from capture_canary.trend.advice import Serving, for_server, remedy
from capture_canary.trend.texts import LANGUAGES, TEXTS


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


def fields(text):
    return {name for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize("key", TEXTS)
def test_both_languages_say_the_same_facts(key):
    english, chinese = (TEXTS[key][language] for language in LANGUAGES)
    assert fields(english) == fields(chinese)
    assert any("\u4e00" <= c <= "\u9fff" for c in chinese)
    for word in ("HCCL_OP_EXPANSION_MODE", "AIV", "9.1.0", "capture-canary exec", "DISABLE"):
        assert (word in english) == (word in chinese), word


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("cause", [*get_args(Cause), None])
def test_every_cause_has_its_remedy_in_every_language(cause, language):
    text = remedy(judgement(cause=cause), soc="a3", mode="AI_CPU", language=language)
    assert len(text) > 20
    assert "{" not in text


SERVER = Serving(
    who="vllm worker 7",
    expected="will degrade",
    reason="because",
    hcomm="9.0.0",
    soc="a3",
    mode="AI_CPU",
    deterministic=False,
    several_communicators=False,
)


def server(**changes):
    return SERVER._replace(**changes)


LOAD = Impact(seconds_per_load=41.25, graphs=35)


def test_a_server_is_told_its_own_facts():
    text = for_server(server(), LOAD)
    assert "vllm worker 7 runs hcomm 9.0.0 on a3 with AI_CPU" in text
    assert "CANN 9.1.0" in text
    assert "validate AIV" in text
    assert "41.2 s of a load of 35 graphs" in text
    assert "not measured" in for_server(server(), None)


@pytest.mark.parametrize("why", ["deterministic", "several_communicators"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_aiv_is_not_advised_where_it_is_not_safe(why, language):
    text = for_server(server(**{why: True}), None, language)
    assert "EXPANSION_MODE=AIV" not in text
    assert "9.1.0" in text


def test_a2_with_aicpu_forced_goes_back():
    assert "Unset HCCL_OP_EXPANSION_MODE" in for_server(server(soc="a2"), None)


def test_servers_with_nothing_to_do():
    assert for_server(server(expected="not exposed"), None) == ""
    assert "Keep AIV" in for_server(server(expected="mitigated", mode="AIV"), None)
    assert "because" in for_server(server(expected="unknown"), None)


@pytest.mark.parametrize(("hcomm", "end"), [("9.0.0", "known (hcomm 9.0.0)."), (None, "known.")])
def test_what_is_unknown_is_of_this_hcomm(hcomm, end):
    assert remedy(judgement("unknown"), soc="a3", mode=None, hcomm=hcomm).endswith(end)
