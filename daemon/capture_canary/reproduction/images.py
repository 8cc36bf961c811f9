"""The same reproduction in other images on this node, one after the other: under its lock, behind its gate.

What an image came to is kept beside the journal; one that was interrupted begins anew.
"""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from capture_canary import foreign
from capture_canary.config.model import Config
from capture_canary.images.engine import EngineError, connect, explain
from capture_canary.images.run import NotRemovedError, RunError, answer, run
from capture_canary.images.turn import Node, RefusedError, Turn, this_node
from capture_canary.model import Report
from capture_canary.probe.vllm import tiny
from capture_canary.report import words
from capture_canary.reproduction.events import Header, check_capture
from capture_canary.reproduction.outcome import Compared
from capture_canary.stack.environ import MODE

MAX_REPORT = 64 << 20
"""Bytes: a report over 8 ranks has some 10 MB."""
_GRACE = 120.0
"""Seconds that a container has beside the budget of the command in it."""
_MEMORY_BASE, _MEMORY_RANK = 4, 4
"""GB that a container may take, in all and for each rank of vLLM."""
_WORK = "/tmp/reproduction"  # noqa: S108  # the container's own

Say = Callable[[str], None]


class Kept(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an image came to, as a file."""

    image: str
    digest: str
    """Of the image that the name stood for."""
    arguments: tuple[str, ...]
    """With which it was asked."""
    report: Report


class Others:
    """The images to compare with."""

    def __init__(
        self,
        header: Header,
        folder: Path,
        *,
        python: str,
        mounts: Sequence[Path] = (),
        budget_seconds: float,
        say: Say,
    ) -> None:
        """Bind to what is reproduced, and to the folder where results are kept.

        Args:
            header: what is reproduced.
            folder: where results are kept.
            python: the Python in the images that has vLLM.
            mounts: what of this node the images are given to read, at the same place.
            budget_seconds: of each image.
            say: gets what happens, line by line.
        """
        self._header = header
        self._folder = folder
        self._python = python
        self._mounts = tuple(str(path.absolute()) for path in mounts)
        self._budget = budget_seconds
        self._say = say

    def compare(
        self, images: Sequence[str], config: Config, base: Mapping[str, str]
    ) -> list[Compared]:
        """Run the reproduction in each image; what cannot be had stands in the result.

        Raises:
            LockBusyError: somebody probes on this node.
            LockUnusableError: there is no lock to be had.
        """
        try:
            client = connect()
        except EngineError as error:
            return [Compared(image, None, str(error)) for image in images]
        ranks = len(self._header.settings.devices)
        try:
            with this_node(config, base, npus=ranks) as node:
                return [self._one(client, node, image) for image in images]
        finally:
            client.close()

    def _one(self, client: Any, node: Node, image: str) -> Compared:
        try:
            digest = str(client.images.get(image).id)
        except Exception as error:  # noqa: BLE001  # the SDK lets some of requests' through
            return Compared(image, None, explain(error))
        file = self._folder / f"image-{hashlib.sha256(image.encode()).hexdigest()[:16]}.json"
        if kept := self._kept(file, image, digest):
            self._say(f"{image}: kept")
            return Compared(image, kept.report, None)
        try:
            with node.turn() as turn:
                report = self._run(client, node, image, turn)
        except NotRemovedError as error:
            node.latch(str(error))
            return Compared(image, None, str(error))
        except (RefusedError, RunError, ValueError) as error:
            return Compared(image, None, str(error))
        self._keep(file, Kept(image=image, digest=digest, arguments=self._argv(), report=report))
        return Compared(image, report, None)

    def _run(self, client: Any, node: Node, image: str, turn: Turn) -> Report:
        """Run it in a container of this turn; return the report, whose numbers are such as captures can have."""
        settings = self._header.settings
        own = (*self._mounts, *([settings.model] if settings.model else []))
        share = msgspec.structs.replace(turn.share, mounts=(*turn.share.mounts, *own))
        ran = run(
            client,
            image,
            self._argv(),
            deadline=self._budget + _GRACE,
            lock=node.lock,
            share=share,
            environ={MODE: settings.mode} if settings.mode else None,
            memory=f"{_MEMORY_BASE + _MEMORY_RANK * len(settings.devices)}g",
            limit=MAX_REPORT,
            on_errors=_lines(lambda line: self._say(f"{image}: {line}")),
        )
        report = answer(ran, Report)
        _check(report)
        return report

    def _argv(self) -> tuple[str, ...]:
        """Return the command for the image: its own settings say what it emulates, if anything."""
        settings = self._header.settings
        return (
            *("reproduce", "--python", self._python, "--tp", str(len(settings.devices))),
            *("--rounds", str(settings.rounds), "--sizes", ",".join(map(str, settings.shapes))),
            *(("--model", settings.model) if settings.model else ("--layers", str(self._layers()))),
            *(("--cudagraph-mode", settings.graph_mode) if settings.graph_mode else ()),
            *("--budget", f"{self._budget:g}", "--output", _WORK, "--json", "-"),
        )

    def _layers(self) -> int:
        return tiny.layers(self._header.settings.collectives)

    def _kept(self, file: Path, image: str, digest: str) -> Kept | None:
        """Return what the same image came to when it was asked the same; None where there is nothing of use."""
        try:
            if file.stat().st_size > MAX_REPORT:
                return None
            found = foreign.decode(file.read_bytes(), Kept)
            _check(found.report)
        except (OSError, ValueError):
            return None
        same = (image, digest, self._argv()) == (found.image, found.digest, found.arguments)
        return found if same else None

    def _keep(self, file: Path, kept: Kept) -> None:
        """Write the file in one step: a reader meets all of it or nothing."""
        part = file.with_suffix(f".{os.getpid()}")
        part.write_bytes(msgspec.json.encode(kept) + b"\n")
        part.replace(file)


def _check(report: Report) -> None:
    """See that the numbers of a report that an image printed are such as captures can have.

    Raises:
        ValueError: one is not.
    """
    for series in report.series:
        for capture in series.captures:
            check_capture(capture)


def _lines(say: Say) -> Callable[[bytes], None]:
    """Return what puts pieces of a stream together to lines, made printable."""
    rest = b""

    def take(data: bytes) -> None:
        nonlocal rest
        *lines, rest = (rest + data).split(b"\n")
        rest = rest[-4096:]
        for line in lines:
            if text := words.plain(line.decode(errors="replace").strip()):
                say(text)

    return take
