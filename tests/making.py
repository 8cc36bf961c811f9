"""Builders of series that several areas' tests share."""

from collections.abc import Callable, Sequence
from typing import Any

from capture_canary.model import ArmName, Capture, GraphsFate, Series
from capture_canary.trend import law
from capture_canary.trend.case import PROBE_KINDS

K = 16


def grows(n: int) -> int:
    """Two ranks on hcomm 8.5: 233, 488, 744, …"""
    return law.growing(K, 1, n)


def flat(n: int) -> int:
    """AllGather on 9.1: constant but for capture 1."""
    return law.fixed_all_gather(K, 1, n)


def none(_n: int) -> int:
    """AIV: no copies at all."""
    return 0


def capture(order: int, copies: int | None = 0, **changes: Any) -> Capture:
    fields: dict[str, Any] = {
        "order": order,
        "round": 0,
        "shape": 256,
        "begin_ns": order * 1_000_000,
        "seconds": 0.01,
        "h2d_copies": copies,
        "h2d_bytes": None if copies is None else 11_984 * copies,
        "copy_seconds": None if copies is None else copies * 1e-6,
        "collectives": {},
    }
    return Capture(**(fields | changes))


def series(
    captures: Sequence[Capture | int | None],
    *,
    arm: ArmName = "as_configured",
    mode: str | None = None,
    collective: str = "AllReduce",
    graphs: GraphsFate = "kept",
    k: int | None = K,
    rank: int = 0,
) -> Series:
    """A series of these captures, or of captures with these copies."""
    return Series(
        arm=arm,
        mode=mode,
        collective=collective,
        graphs=graphs,
        collectives=k,
        rank=rank,
        device=rank,
        peers=None,
        captures=[
            one if isinstance(one, Capture) else capture(order, one)
            for order, one in enumerate(captures, 1)
        ],
    )


def arm(
    name: ArmName,
    copies: Callable[[int], int | None],
    *,
    captures: int = 3,
    ranks: int = 2,
    kinds: Sequence[tuple[str, GraphsFate]] = PROBE_KINDS,
    mode: str | None = None,
) -> list[Series]:
    """Every kind of series on every rank, with this many copies in capture n."""
    return [
        series(
            [copies(n) for n in range(1, captures + 1)],
            arm=name,
            mode=mode,
            collective=collective,
            graphs=graphs,
            rank=rank,
        )
        for collective, graphs in kinds
        for rank in range(ranks)
    ]
