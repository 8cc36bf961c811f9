"""Which captures a series consists of."""

import random
from collections.abc import Iterator, Sequence

from capture_canary.model import GraphsFate

MAX_GRAPHS = 6
"""Graphs alive on one NPU in AI_CPU mode before communication may block (hccl, HCCL_OP_EXPANSION_MODE.md)."""


def plan(
    graphs: GraphsFate, *, rounds: int, shapes: Sequence[int], seed: int | None = None
) -> Iterator[tuple[int, int, int]]:
    """Yield (order, round, shape) of each capture of a series; kept graphs only up to `MAX_GRAPHS`.

    With a seed each round takes the shapes in another order, so that no shape always follows the same one.
    """
    mixer = None if seed is None else random.Random(seed)  # noqa: S311 - an order, not a secret
    limit = MAX_GRAPHS if graphs == "kept" else rounds * len(shapes)
    order = 0
    for round_ in range(rounds):
        for shape in shapes if mixer is None else mixer.sample(shapes, len(shapes)):
            order += 1
            if order > limit:
                return
            yield order, round_, shape
