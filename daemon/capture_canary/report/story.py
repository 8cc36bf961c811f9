"""This node in at most twenty lines: what, since when, for whom, what changed, who acts, what next."""

import textwrap

from capture_canary.report import words
from capture_canary.report.advice import remedy, who
from capture_canary.report.past import Past
from capture_canary.store import Change

MAX_LINES = 20
_WIDTH = 100
_RANK = {"degraded": 0, "unknown": 1, "mitigated": 2, "healthy": 3}


def tell(past: Past, *, node: str, now: float) -> list[str]:
    """Return the story, the worst first."""
    lines = [f"{words.plain(node, 60)}, {words.moment(now)}"]
    if past.emulated:
        lines.append("EMULATED: this says nothing of any real NPU.")
    tail = [*_changed(past, now), *_next(past, now)]
    if not past.present:
        lines.append("Nothing was judged here yet: the verdict is unknown.")
    blocks = [
        _verdict(past, change, now)
        for change in sorted(past.present, key=lambda one: _RANK[one.verdict])
    ]
    room = MAX_LINES - len(lines) - len(tail)
    shown = 0
    while shown < len(blocks) and len(blocks[shown]) <= room - (shown + 1 < len(blocks)):
        room -= len(blocks[shown])
        lines += blocks[shown]
        shown += 1
    if blocks[shown:]:
        lines += _wrapped("And", f"{len(blocks) - shown} more: capture-canary history", 1)
    return [*lines, *tail]


def _verdict(past: Past, change: Change, now: float) -> list[str]:
    newest = past.newest(change)
    cause = f", {change.cause}" if change.cause else ""
    stack = words.stack(past.stack(change.stack), change.stack)
    what = (
        f"{change.verdict.upper()}{cause}, since {words.moment(change.since)} "
        f"({words.span(now - change.since)})"
    )
    if change.verdict == "unknown" and any(
        (one.stack, one.evidence) == (change.stack, change.evidence) for one in past.open
    ):
        what += "; it was degraded before, and nothing has cleared that"
    cost = newest.impact if newest and change.verdict == "degraded" else None
    advice = remedy(past, change)
    return [
        *_wrapped("What", what, 1),
        *_wrapped("For", f"servers with {stack} (by {words.EVIDENCE[change.evidence]})", 2),
        *_wrapped("Why", (newest or change).reason, 2),
        *(_wrapped("Costs", f"about {cost:,.3g} s in each load of a server", 1) if cost else []),
        *_wrapped("Acts", who(change), 1),
        *(_wrapped("Do", advice, 3) if advice else []),
    ]


def _changed(past: Past, now: float) -> list[str]:
    lines = []
    if past.stacks[1:]:
        new, old = past.stacks[0], past.stacks[1]
        text = f"{words.difference(old.stacks, new.stacks)}, {words.span(now - new.at)} ago"
        lines += _wrapped("Changed", text, 2)
    if past.changes[1:]:
        course = " → ".join(
            f"{'gone' if one.retired else one.verdict} ({words.span(now - one.at)} ago)"
            for one in reversed(past.changes[:4])
        )
        lines += _wrapped("Course", course, 1)
    return lines


def _next(past: Past, now: float) -> list[str]:
    probe = past.probes[0] if past.probes else None
    last = f"{words.span(now - probe.at)} ago: {probe.verdict}" if probe else "none"
    lines = _wrapped("Last", f"probe {last}" if probe else "no probe was made", 1)
    skip = past.skips[0] if past.skips else None
    if skip and (probe is None or skip.last > probe.at):
        times = f"{skip.count} times" if skip.count > 1 else "once"
        detail = f" ({skip.detail})" if skip.detail else ""
        lines += _wrapped(
            "Skipped", f"{times} since {words.moment(skip.first)}: {skip.reason}{detail}", 2
        )
    return [
        *lines,
        *_wrapped("Next", "capture-canary history; capture-canary report -o report.html", 1),
    ]


def _wrapped(label: str, text: str, lines: int) -> list[str]:
    return textwrap.wrap(
        words.plain(text, 600),
        _WIDTH,
        initial_indent=f"{label + ':':<9}",
        subsequent_indent=" " * 9,
        max_lines=lines,
        placeholder=" …",
    )
