"""Which captures a series consists of."""

from collections.abc import Iterator, Sequence

from capture_canary.model import GraphsFate

MAX_GRAPHS = 6
"""Graphs alive on one NPU in AI_CPU mode before communication may block (hccl, HCCL_OP_EXPANSION_MODE.md)."""


def plan(
    graphs: GraphsFate, *, rounds: int, shapes: Sequence[int]
) -> Iterator[tuple[int, int, int]]:
    """Yield (order, round, shape) of each capture of a series; kept graphs only up to `MAX_GRAPHS`."""
    limit = MAX_GRAPHS if graphs == "kept" else rounds * len(shapes)
    order = 0
    for round_ in range(rounds):
        for shape in shapes:
            order += 1
            if order > limit:
                return
            yield order, round_, shape
