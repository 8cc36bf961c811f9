"""The matrix as a bake file: what `docker buildx bake` builds, grouped by CANN, SoC, system and flavour."""

from collections.abc import Iterable
from typing import Any

from capture_canary import __version__
from capture_canary.images.cells import REPOSITORY, Cell
from capture_canary.images.job import arguments_of
from capture_canary.images.source import DOCKERFILE

PLATFORMS = ("linux/amd64", "linux/arm64")
"""Those that CANN's images are published for."""


def bake(cells: Iterable[Cell], *, repository: str = REPOSITORY) -> dict[str, Any]:
    """Return the file as an object; emulated cells are left out, whose bases are on one machine only."""
    real = [cell for cell in cells if cell.buildable and cell.kind == "real"]
    groups: dict[str, list[str]] = {"default": []}
    for cell in real:
        name = target(cell)
        if cell.status == "supported" and cell.flavour == "core":
            groups["default"].append(name)
        for group in (cell.flavour, cell.soc, cell.system, cell.cann):
            groups.setdefault(_word(group), []).append(name)
    return {
        "variable": {"REVISION": {"default": "unknown"}, "REPOSITORY": {"default": repository}},
        "group": {name: {"targets": targets} for name, targets in groups.items()},
        "target": {target(cell): _target(cell) for cell in real},
    }


def target(cell: Cell) -> str:
    """Return the name of a cell's target: bake allows no dots."""
    return _word(cell.name)


def _word(text: str) -> str:
    word = text.lower().replace(".", "-")
    return word if word[0].isalpha() else f"cann-{word}" if "-" in word else f"soc-{word}"


def _target(cell: Cell) -> dict[str, Any]:
    return {
        "context": ".",
        "dockerfile": DOCKERFILE,
        "args": arguments_of(cell, "${REVISION}"),
        "tags": [cell.tag(__version__, "${REPOSITORY}")],
        "platforms": list(PLATFORMS),
    }
