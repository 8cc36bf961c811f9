"""A traced process's captures as series: one a communicator, since each has lists, and a k, of its own.

Copies are counted a capture. Where captures hold collectives of several communicators their copies cannot be told
apart: then all are one series whose k is not known, and no law can be met.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from capture_canary.model import Capture, GraphsFate, Series
from capture_canary.trace.record import TracedCapture


def series_of(traced: Iterable[TracedCapture], *, rank: int, mode: str | None) -> list[Series]:
    """Return the captures that hold collectives, in series; all of them where none does."""
    everything = [*traced]
    captures = [one for one in everything if one.capture.collectives] or everything
    apart = all(len(one.communicators) == 1 and one.communicators_complete for one in captures)
    if not apart:
        return [_series([_without_k(one) for one in captures], captures, rank=rank, mode=mode)]
    groups: defaultdict[int, list[TracedCapture]] = defaultdict(list)
    for one in captures:
        groups[next(iter(one.communicators))].append(one)
    return [
        _series(_numbered(group, first=len(groups) > 1), group, rank=rank, mode=mode)
        for _, group in sorted(groups.items())
    ]


def _without_k(traced: TracedCapture) -> Capture:
    return msgspec.structs.replace(traced.capture, collectives={})


def _numbered(group: Sequence[TracedCapture], *, first: bool) -> list[Capture]:
    """Return the captures of one of several communicators, numbered on it."""
    if not first:
        return [
            one.capture for one in group
        ]  # the process's own numbers, which tell of those not kept
    return [msgspec.structs.replace(one.capture, order=order) for order, one in enumerate(group, 1)]


def _series(
    captures: list[Capture], traced: Sequence[TracedCapture], *, rank: int, mode: str | None
) -> Series:
    """Return one series. Graphs count as destroyed where none is left of those before."""
    last = traced[-1]
    fate: GraphsFate = "kept" if last.graphs_alive > 1 else "destroyed"
    kinds = {kind for one in traced for kind in one.capture.collectives}
    totals = {sum(capture.collectives.values()) for capture in captures if capture.collectives}
    return Series(
        arm="as_configured",
        mode=mode,
        collective=kinds.pop() if len(kinds) == 1 else "mixed",
        graphs=fate,
        collectives=totals.pop() if len(totals) == 1 else None,
        rank=rank,
        device=last.device if last.device is not None else -1,
        peers=None,
        captures=captures,
    )
