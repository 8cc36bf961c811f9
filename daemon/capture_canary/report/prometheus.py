"""The past of a node by what Prometheus knows of it: believed no more than any other page of the network."""

import argparse
import json
import re
import urllib.parse
from typing import Any

import msgspec

from capture_canary import fetch, foreign
from capture_canary.config.keys import shown
from capture_canary.export.families import PREFIX
from capture_canary.model import Fact, Stack
from capture_canary.report.past import Past
from capture_canary.stack.identity import PARTS
from capture_canary.store import Change, Probe, Skip, Stacks, rows

DEADLINE = 20.0
"""Seconds for one query."""
MAX_ANSWER = 4 << 20
"""Bytes of one answer."""
_POINTS = 500
"""Looks back at which the begin of a verdict is searched for."""
_DAY = 86_400.0
_SHORTEST = 600.0
_WANTED = (
    "verdict|verdict_info|verdict_settled_info|stack_info|build_info|load_impact_seconds|rtmemcpy_growth|"
    "capture_growth_seconds|mitigation|probe_last_run_timestamp_seconds|probe_duration_seconds"
)


class UnreadableError(Exception):
    """Prometheus can't be asked, or knows nothing of the node."""


class Series(msgspec.Struct, frozen=True):
    """One sample of an instant query."""

    metric: dict[str, str]
    value: tuple[float, str]

    @property
    def name(self) -> str:
        """The metric's name without our prefix."""
        return self.metric.get("__name__", "").removeprefix(PREFIX)

    @property
    def number(self) -> float:
        """The value; NaN where it is no number."""
        try:
            return float(self.value[1])
        except ValueError:
            return float("nan")


class _Data(msgspec.Struct, frozen=True):
    result: list[Series]


class _Answer(msgspec.Struct, frozen=True):
    data: _Data


def address(text: str) -> str:
    """Return the address of a Prometheus, as an option gives it."""
    parts = _split(text)
    if parts is None:
        raise argparse.ArgumentTypeError(f"{shown(text)} is no address like http://prometheus:9090")
    if parts.username is not None or parts.query or parts.fragment:
        raise argparse.ArgumentTypeError(
            f"{shown(text)}: no user, query or fragment can be in the address"
        )
    return text.rstrip("/")


def _split(text: str) -> urllib.parse.SplitResult | None:
    try:
        parts = urllib.parse.urlsplit(text)
        fits = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        return None
    return parts if fits else None


def read(url: str, node: str, *, since: float, now: float) -> Past:
    """Return what Prometheus knows of a node from `since` on, Unix time.

    Raises:
        UnreadableError: with the reason.
    """
    if not re.fullmatch(r"[A-Za-z0-9_.:\[\]-]{1,253}", node, re.ASCII):
        raise UnreadableError(f"{node[:60]!r} is no name of a node")
    found = _ask(url, _either(f'{{__name__=~"{PREFIX}({_WANTED})", OF}}', node))
    if not found:
        raise UnreadableError(f"{url} has no series of {node}, by `node` or by `instance`")
    span = max(now - since, _SHORTEST)
    zero = _either(f"timestamp({PREFIX}verdict{{OF}} == 0)", node)
    back = f"[{span:.0f}s:{max(span / _POINTS, 15):.0f}s]"
    begins = _ask(url, f"max_over_time(({zero}){back})")
    skipped = _ask(url, _either(f"increase({PREFIX}probe_skips_total{{OF}}[1d]) > 0", node))
    return _past(found, begins, skipped, since=now - span, now=now)


def _either(text: str, node: str) -> str:
    """The expression, its `OF` being the series that bear the node's name, as `node` or as the target's address."""
    quoted = json.dumps(node)
    named = json.dumps(f"{re.escape(node)}(:[0-9]+)?")
    first, second = f"node={quoted}", f"instance=~{named}"
    return " or ".join(text.replace("OF", one) for one in (first, second))


def _ask(url: str, query: str) -> list[Series]:
    target = f"{url}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    try:
        page = fetch.get(target, deadline=DEADLINE, limit=MAX_ANSWER, accept="application/json")
        return foreign.decode(page, _Answer).data.result
    except (OSError, ValueError) as error:
        raise UnreadableError(f"Prometheus at {url}: {error}") from error


def _past(
    found: list[Series], begins: list[Series], skipped: list[Series], *, since: float, now: float
) -> Past:
    emulated = any(
        one.metric.get("emulated") == "true" for one in found if one.name == "build_info"
    )
    stacks = {
        one.metric.get("stack", ""): _stack(one.metric) for one in found if one.name == "stack_info"
    }
    begun = {_key(one.metric): one.number for one in begins}
    present = [
        _change(one, found, begun, since=since, emulated=emulated)
        for one in found
        if one.name == "verdict" and one.number == 1
    ]
    settled = [
        _change(one, found, begun, since=since, emulated=emulated)
        for one in found
        if one.name == "verdict_settled_info" and one.metric.get("verdict") == "degraded"
    ]
    changes = rows.convert(present, Change)
    return Past(
        probes=[_probe(change, found, now) for change in changes],
        latest=None,
        present=changes,
        open=[
            *(one for one in changes if one.verdict == "degraded"),
            *rows.convert(settled, Change),
        ],
        changes=[],
        skips=[_skip(one, now) for one in skipped],
        stacks=[Stacks(id=0, at=now, stacks=stacks)],
        events=[],
    )


def _stack(labels: dict[str, str]) -> Stack:
    return {
        part: Fact(value=labels[part][:64], source="Prometheus")
        for part in PARTS
        if labels.get(part)
    }


def _key(labels: dict[str, str]) -> tuple[str, ...]:
    return tuple(labels.get(name, "") for name in ("instance", "stack", "evidence", "verdict"))


def _change(
    one: Series,
    found: list[Series],
    begun: dict[tuple[str, ...], float],
    *,
    since: float,
    emulated: bool,
) -> dict[str, Any]:
    """A verdict in force, as a row that is still to be checked."""
    labels = one.metric
    cause = _label(found, "verdict_info", "cause", labels, "stack", "evidence")
    begin = begun.get(_key(labels), since)
    return {
        "id": 0,
        "at": begin,
        "stack": labels.get("stack", ""),
        "evidence": labels.get("evidence"),
        "verdict": labels.get("verdict"),
        "cause": cause,
        "reason": _reason(found, labels),
        "emulated": emulated,
        "retired": False,
        "since": begin,
    }


def _reason(found: list[Series], labels: dict[str, str]) -> str:
    own = {**labels, "arm": "as_configured"}
    copies = _number(found, "rtmemcpy_growth", own, "stack", "evidence", "arm")
    seconds = _number(found, "capture_growth_seconds", own, "stack", "evidence", "arm")
    if copies is not None:
        return f"each further capture makes {copies:,.3g} more H2D copies, by Prometheus"
    if seconds is not None:
        return f"each further capture takes {seconds:.3g} s more, by Prometheus; copies were not counted"
    return "Prometheus has no growth; the node's page says why"


def _probe(change: Change, found: list[Series], now: float) -> Probe:
    labels = {"stack": change.stack, "evidence": change.evidence}
    at = _number(found, "probe_last_run_timestamp_seconds", labels)
    return Probe(
        id=0,
        at=at if at is not None and change.evidence == "probe" else now,
        took=_number(found, "probe_duration_seconds", labels) or 0.0,
        stack=change.stack,
        evidence=change.evidence,
        emulated=change.emulated,
        verdict=change.verdict,
        cause=change.cause,
        reason=change.reason,
        mode=_label(found, "mitigation", "mode", labels, "stack"),
        copies=_number(
            found, "rtmemcpy_growth", {**labels, "arm": "as_configured"}, "stack", "arm"
        ),
        copies_lower=None,
        copies_upper=None,
        seconds=None,
        seconds_lower=None,
        seconds_upper=None,
        impact=_number(found, "load_impact_seconds", labels, "stack"),
    )


def _skip(one: Series, now: float) -> Skip:
    count = round(min(max(one.number, 1), 100_000)) if one.number > 0 else 1
    reason = one.metric.get("reason", "")[:64]
    return Skip(id=0, first=now - _DAY, last=now, reason=reason, detail="", count=count)


def _matching(
    found: list[Series], name: str, labels: dict[str, str], by: tuple[str, ...]
) -> Series | None:
    return next(
        (
            one
            for one in found
            if one.name == name and all(one.metric.get(key) == labels.get(key) for key in by)
        ),
        None,
    )


def _number(found: list[Series], name: str, labels: dict[str, str], *by: str) -> float | None:
    one = _matching(found, name, labels, by)
    return one.number if one and abs(one.number) < 1e12 else None  # noqa: PLR2004  # no NaN, no infinity


def _label(
    found: list[Series], name: str, wanted: str, labels: dict[str, str], *by: str
) -> str | None:
    one = _matching(found, name, labels, by)
    return one.metric.get(wanted) if one else None
