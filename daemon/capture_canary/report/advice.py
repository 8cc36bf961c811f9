"""What to do about a verdict that the history holds, and who does it."""

from capture_canary.model import Cause, Growth, Impact, Judgement, Report
from capture_canary.report.past import Past
from capture_canary.store import Change
from capture_canary.trend import advice

_OWNER = "whoever builds the serving image or writes its pod spec"
_OPERATOR = "whoever runs Capture Canary on this node"
_ACTS: dict[Cause, str] = {
    "aicpu_resource_list": _OWNER,
    "mode_not_effective": _OWNER,
    "copies_unattributed": _OWNER,
    "regression": "the vendor of CANN, asked by whoever builds the serving image",
    "other": "the operator of the node",
    "time_only": _OPERATOR,
    "suspect": _OPERATOR,
    "tracer_blind": _OPERATOR,
}


def who(change: Change | Report) -> str:
    """Return who has to act."""
    if change.verdict == "healthy":
        return "nobody"
    if change.verdict == "mitigated":
        return f"nobody now; {_OWNER} at the next upgrade"
    return _OPERATOR if change.cause is None else _ACTS[change.cause]


def remedy(past: Past, change: Change) -> str:
    """Return what they can do; an empty text where there is nothing to do."""
    probe = past.newest(change)
    values = {name: fact.value for name, fact in (past.stack(change.stack) or {}).items()}
    known = probe is not None and probe.impact is not None
    judgement = Judgement(
        verdict=change.verdict,
        cause=change.cause,
        reason=change.reason,
        impact=Impact(seconds_per_load=probe.impact, graphs=0) if probe and known else None,
        matches_law=None,
        growth=Growth(copies=None, seconds=None, series=None),
    )
    return advice.remedy(
        judgement,
        soc=values.get("soc"),
        mode=probe.mode if probe else None,
        hcomm=values.get("hcomm"),
    )
