"""Which SoC a node has, without opening an NPU: from the table that npu-smi prints."""

from collections import Counter

from capture_canary.model import Fact
from capture_canary.stack.exposure import family
from capture_canary.stack.npus import Npus

_A3_CHIPS = 2
"""Chips an NPU has on A3, whose name npu-smi prints as plain `Ascend910` (tests/data/npu-smi/)."""


def soc_of(npus: Npus) -> Fact:
    """Return the SoC's name or family; no value where the table does not tell, or tells several."""
    names = {chip.name for chip in npus.chips}
    if len(names) != 1:
        return Fact(value=None, source=f"{npus.source} names {len(names)} kinds of chips")
    name = names.pop()
    if family(name):
        return Fact(value=name, source=npus.source)
    chips = Counter(chip.npu for chip in npus.chips)
    if name.lower() == "ascend910" and set(chips.values()) == {_A3_CHIPS}:
        return Fact(value="a3", source=f"{npus.source}: {name} with two chips an NPU")
    return Fact(value=None, source=f"{npus.source} says {name}, which may be several")
