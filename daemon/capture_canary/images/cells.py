"""A cell of the matrix: one image, what it is built on, or why it can't be."""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from capture_canary.stack.exposure import Exposure, exposure

Kind = Literal["real", "emulated"]
Flavour = Literal["core", "vllm"]
Status = Literal["supported", "preview", "not analysed", "emulated", "unavailable"]

FLAVOURS: Final[tuple[Flavour, ...]] = ("core", "vllm")
KINDS: Final[tuple[Kind, ...]] = ("real", "emulated")
REPOSITORY: Final = "capture-canary"
"""Name that images are tagged with, unless told otherwise."""


class MatrixError(ValueError):
    """The matrix has a flaw, or no such cell; the message names it."""


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One image: what it is built on, or why it can't be."""

    kind: Kind
    cann: str
    soc: str
    """As base images name it: 910b, a3, 310p, 950."""
    family: str
    """As Capture Canary names it: a2, a3, 310p, 950."""
    system: str
    flavour: Flavour
    base: str | None
    """The image it is FROM; None where it can't be."""
    builder: str
    """The image in which the wheel is built."""
    python: str | None
    torch_npu: str | None
    vllm: str | None
    vllm_ascend: str | None
    status: Status
    reason: str | None
    """Why it can't be, or what its status means."""

    @property
    def name(self) -> str:
        """What commands call it, and the end of its tag."""
        vllm = "-vllm" if self.flavour == "vllm" else ""
        emulated = "emulated-" if self.kind == "emulated" else ""
        return f"{emulated}{self.cann.lower()}-{self.soc}-{self.system}{vllm}"

    def tag(self, version: str, repository: str = REPOSITORY) -> str:
        """Return the name of its image; `version` is Capture Canary's."""
        return f"{repository}:{version.replace('+', '_')}-{self.name}"

    @property
    def exposure(self) -> Exposure:
        """Whether a server in it gets slower with the SoC's default mode, by what is known of its CANN."""
        return exposure(soc=self.family, hcomm=self.cann, mode=None)

    @property
    def buildable(self) -> bool:
        """Whether there is something to build it on."""
        return self.base is not None


def select(
    cells: Sequence[Cell],
    *,
    names: Sequence[str] = (),
    kinds: Sequence[str] = (),
    canns: Sequence[str] = (),
    socs: Sequence[str] = (),
    systems: Sequence[str] = (),
    flavours: Sequence[str] = (),
) -> tuple[Cell, ...]:
    """Return the cells that all of the filters take; an empty one takes everything.

    Raises:
        MatrixError: a value that no cell has, or nothing is left of all of them together.
    """
    wanted: list[tuple[str, str, Sequence[str]]] = [
        ("cell", "name", names),
        ("kind", "kind", kinds),
        ("CANN", "cann", canns),
        ("SoC", "soc", socs),
        ("OS", "system", systems),
        ("flavour", "flavour", flavours),
    ]
    found = tuple(cells)
    for what, field, values in wanted:
        there = {_same(str(getattr(cell, field))): str(getattr(cell, field)) for cell in cells}
        for value in values:
            if _same(value) not in there:
                known = ", ".join(dict.fromkeys(there.values())) if field != "name" else None
                hint = f"there are {known}" if known else "`capture-canary images list` shows all"
                raise MatrixError(f"no {what} {value!r} in the matrix: {hint}")
        taken = {_same(value) for value in values}
        found = tuple(
            cell for cell in found if not taken or _same(str(getattr(cell, field))) in taken
        )
    if not found:
        asked = ", ".join(f"{what} {'/'.join(values)}" for what, _, values in wanted if values)
        raise MatrixError(f"no cell of the matrix is {asked}")
    return found


def _same(text: str) -> str:
    return text.lower()
