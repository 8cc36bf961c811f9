"""Which chips a probe takes, of those that it may.

Both chips of one NPU first: on an A3 they share a package, so that the probe's traffic stays on
the link between the two and off the links that servers use, and the scheduler hands them out
together. Beyond that always the same ones: times compare best with those of the last probe.
"""

from collections.abc import Sequence
from typing import TypeVar

from capture_canary.stack.npus import Chip

Key = TypeVar("Key")

_CHIPS_A_CARD = {"a3": 2}


def card_of(chip: Chip, soc: str | None) -> int:
    """The card that a chip sits on; from its number where the source doesn't say."""
    if chip.npu is not None:
        return chip.npu
    return (chip.phy_id or 0) // _CHIPS_A_CARD.get(soc or "", 1)


def choose(free: Sequence[Chip], count: int, soc: str | None) -> list[int]:
    """`count` of the `free` chips' numbers: whole free cards first, then the lowest numbers."""
    cards: dict[int, list[int]] = {}
    for chip in free:
        if chip.phy_id is not None:
            cards.setdefault(card_of(chip, soc), []).append(chip.phy_id)
    # Of a card that somebody uses, fewer chips are free than of a whole one.
    order = sorted(cards.values(), key=lambda ids: (-len(ids), min(ids)))
    return sorted([phy_id for ids in order for phy_id in sorted(ids)][:count])
