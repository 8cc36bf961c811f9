"""What is to be built, and what is told of it on the way: between `images build` and its children."""

from typing import Final, Literal

import msgspec

from capture_canary import __version__
from capture_canary.images.cells import Cell

STAGE: Final = "io.capture-canary.stage"
"""Label of everything that our Dockerfile makes, `done` on what is finished."""
UNFINISHED: Final = ("wheel", "install", "final")
BUILT_FROM: Final = "io.capture-canary.built-from"
"""Label: hash of sources, base image and arguments; a cell that has it already is not built again."""
LOCAL: Final = "localhost/"
"""What begins so is made here, never pulled."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One image to build."""

    name: str
    tag: str
    bases: tuple[str, ...]
    """Images that it is FROM, pulled first where they are not here; the last is the one it is shipped on."""
    pull: bool
    """Also pull those that are here."""
    context: str
    """Path of a tar file."""
    context_digest: str
    dockerfile: str
    target: str | None = None
    arguments: dict[str, str] = {}
    network: str | None = None
    force: bool = False
    """Build although it is there."""


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a child tells, a line of JSON each."""

    kind: Literal["pull", "step", "log", "built", "kept", "failed"]
    text: str
    part: int | None = None
    whole: int | None = None


def arguments_of(cell: Cell, revision: str) -> dict[str, str]:
    """Return the Dockerfile's arguments of a cell, but for the digest of its base."""
    optional = {
        "TORCH_NPU": cell.torch_npu,
        "VLLM": cell.vllm,
        "VLLM_ASCEND": cell.vllm_ascend,
        "PYTHON": cell.python,
    }
    return {
        "BUILDER": cell.builder,
        "BASE": cell.base or "",
        "KIND": cell.kind,
        "CANN": cell.cann,
        "SOC": cell.soc,
        "OS": cell.system,
        "FLAVOUR": cell.flavour,
        "BASE_NAME": cell.base or "",
        "VERSION": __version__,
        "REVISION": revision,
        **{name: value for name, value in optional.items() if value is not None},
    }
