"""What to do about a verdict, in a sentence or two; the words are in texts.py."""

from typing import NamedTuple

from capture_canary.model import Impact, Judgement, Report
from capture_canary.stack import exposure
from capture_canary.trend.impact import negligible
from capture_canary.trend.texts import Language, text


def remedy(
    judgement: Judgement | Report,
    *,
    soc: str | None,
    mode: str | None,
    hcomm: str | None = None,
    language: Language = "en",
) -> str:
    """Return what an operator can do; an empty text where there is nothing to do.

    Args:
        judgement: the verdict, or the report that has it.
        soc: name or family of the SoC.
        mode: the expansion mode in force.
        hcomm: its version.
        language: of the text.
    """
    if judgement.verdict == "healthy":
        return ""
    if judgement.verdict == "mitigated":
        return text("keep", language, mode=mode or "HCCL_OP_EXPANSION_MODE")
    if judgement.cause == "aicpu_resource_list":
        return _resource_list(judgement, soc=soc, mode=mode, language=language)
    if judgement.cause is not None:
        return text(judgement.cause, language, aiv_warning=text("aiv_warning", language))
    return text("probe_again", language, hcomm=f" (hcomm {hcomm})" if hcomm else "")


def _resource_list(
    judgement: Judgement | Report, *, soc: str | None, mode: str | None, language: Language
) -> str:
    """The fix is a newer CANN; what helps until then depends on the SoC."""
    if negligible(judgement.impact):
        return text("when_it_suits", language)
    return _way_out(soc=soc, mode=mode, language=language)


def _way_out(*, soc: str | None, mode: str | None, language: Language) -> str:
    default = exposure.default_mode(soc)
    if exposure.mitigates(default) and not exposure.mitigates(mode):
        return text("unset", language, mode=mode, default=default)
    return text("upgrade_or_aiv", language, aiv_warning=text("aiv_warning", language))


class Serving(NamedTuple):
    """What is known of a server before anything is measured."""

    who: str
    expected: str
    """`will degrade`, `mitigated`, `not exposed` or `unknown`."""
    reason: str
    hcomm: str | None
    soc: str | None
    mode: str | None
    deterministic: bool
    several_communicators: bool


def for_server(server: Serving, impact: Impact | None, language: Language = "en") -> str:
    """Return one paragraph about a server, from its own facts; an empty text where all is well.

    Args:
        server: the server.
        impact: what a measurement on this node found that a load loses, where there was one.
        language: of the text.
    """
    facts = {"who": server.who, "hcomm": server.hcomm, "soc": server.soc, "mode": server.mode}
    if server.expected == "not exposed":
        return ""
    if server.expected == "unknown":
        return text("expect_unknown", language, who=server.who, why=server.reason)
    if server.expected == "mitigated":
        return f"{text('expect_mitigated', language, **facts)} {text('keep', language, mode=server.mode)}"
    reasons = [
        text(key, language)
        for key, holds in (
            ("deterministic", server.deterministic),
            ("several_communicators", server.several_communicators),
        )
        if holds
    ]
    if reasons:
        remedy = text("upgrade_no_aiv", language, why="; ".join(reasons))
    else:
        remedy = _way_out(soc=server.soc, mode=server.mode, language=language)
    return " ".join([text("expect_degrade", language, **facts), remedy, _saves(impact, language)])


def _saves(impact: Impact | None, language: Language) -> str:
    if impact is None or impact.seconds_per_load is None:
        return text("saves_unknown", language)
    seconds = f"{impact.seconds_per_load:.3g}"
    return text("saves", language, seconds=seconds, graphs=impact.graphs)
