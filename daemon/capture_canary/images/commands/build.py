"""`capture-canary images build`: selected cells of the matrix, several at a time."""

import argparse
import hashlib
import re
import tempfile
from pathlib import Path

from rich.console import Console

from capture_canary import __version__
from capture_canary.images.builds import Builds, Outcome, clean, cpus, signals_as_exceptions
from capture_canary.images.cells import REPOSITORY, Cell, MatrixError
from capture_canary.images.choice import add_choice, add_places, chosen
from capture_canary.images.engine import connect, free_bytes
from capture_canary.images.job import Job, arguments_of
from capture_canary.images.progress import progress
from capture_canary.images.source import DOCKERFILE, find_source, pack, revision
from capture_canary.lock import LockBusyError, acquire

_LEAST_FREE = 2 << 30
"""Bytes; a base of CANN alone is several times that."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_choice(parser)
    add_places(parser)
    parser.add_argument(
        "--jobs", type=_count, metavar="N", default=cpus(), help="at a time (%(default)s)"
    )
    parser.add_argument("--pull", action="store_true", help="pull bases that are here, too")
    parser.add_argument("--force", action="store_true", help="build what is there already")
    parser.add_argument("--network", metavar="NAME", help="of the build's steps, e.g. host")
    parser.add_argument(
        "--repository", metavar="NAME", default=REPOSITORY, help="to tag with (%(default)s)"
    )
    parser.add_argument(
        "--deadline", type=float, metavar="SECONDS", default=7200.0, help="for each (%(default)g)"
    )


def run(args: argparse.Namespace) -> int:
    """Build; return 0, or 1 where a cell failed."""
    errors = Console(stderr=True)
    cells = _buildable(args, errors)
    source, client = find_source(args.source), connect()
    free = free_bytes(client)
    if free is not None and free < _LEAST_FREE:
        errors.print(f"only {free >> 20} MiB are free for images: a build may run out of disk")
    try:
        lock = acquire(args.cache / "build.lock", holder="another `images build`")
    except LockBusyError as error:
        raise MatrixError(str(error)) from None
    try:
        with tempfile.TemporaryDirectory(prefix="capture-canary-build-") as folder:
            context = Path(folder, "context.tar")
            maker = _Maker(args, context, pack(source, context), revision(source))
            return _build(args, errors, maker, cells)
    finally:
        clean(client)
        lock.release()


def _build(args: argparse.Namespace, errors: Console, maker: "_Maker", cells: list[Cell]) -> int:
    """Build the wheel of each builder once, then all cells, whose builds find it in the Engine's cache."""
    wheels = maker.wheels(cells)
    jobs = [maker.cell(cell) for cell in cells]
    with (
        signals_as_exceptions(),
        progress(errors, [job.name for job in (*wheels, *jobs)]) as observe,
    ):
        builds = Builds(observe, args.cache / "logs", jobs=args.jobs, deadline=args.deadline)
        outcomes = builds.run(wheels)
        failed = {one.name for one in outcomes if one.result == "failed"}
        # What is wrong with a builder is said once, not by every cell.
        outcomes += builds.run([job for job in jobs if maker.wheel_of(job) not in failed])
    return _summary(
        errors, outcomes, skipped=len(wheels) + len(jobs) - len(outcomes), logs=args.cache / "logs"
    )


def _buildable(args: argparse.Namespace, errors: Console) -> list[Cell]:
    cells = chosen(args)
    for cell in cells:
        if not cell.buildable and args.names:
            raise MatrixError(f"{cell.name} can't be built: {cell.reason}")
    left_out = [cell for cell in cells if not cell.buildable]
    if len(left_out) == len(cells):
        raise MatrixError(f"none of these can be built: {left_out[0].reason}")
    if left_out:
        errors.print(f"{len(left_out)} of these can't be built: `images list --all` says why")
    return [cell for cell in cells if cell.buildable]


class _Maker:
    """Makes jobs of cells."""

    def __init__(self, args: argparse.Namespace, context: Path, digest: str, commit: str) -> None:
        self._args = args
        self._revision = commit
        self._context = context
        self._digest = digest

    def wheels(self, cells: list[Cell]) -> list[Job]:
        """Return a job for each builder: the stage that all of its cells share."""
        return [self._wheel(builder) for builder in dict.fromkeys(cell.builder for cell in cells)]

    def _wheel(self, builder: str) -> Job:
        name = _wheel_name(builder)
        return self._job(
            name,
            f"localhost/capture-canary/{name}:latest",
            (builder,),
            {"BUILDER": builder},
            "wheel",
        )

    def wheel_of(self, job: Job) -> str:
        """Return the name of the job that comes before this one."""
        return _wheel_name(job.bases[0])

    def cell(self, cell: Cell) -> Job:
        """Return a cell's job."""
        tag = cell.tag(__version__, self._args.repository)
        bases = (cell.builder, cell.base or "")
        return self._job(cell.name, tag, bases, arguments_of(cell, self._revision), None)

    def _job(
        self,
        name: str,
        tag: str,
        bases: tuple[str, ...],
        arguments: dict[str, str],
        target: str | None,
    ) -> Job:
        return Job(
            name=name,
            tag=tag,
            bases=bases,
            pull=self._args.pull,
            context=str(self._context),
            context_digest=self._digest,
            dockerfile=DOCKERFILE,
            target=target,
            arguments=arguments,
            network=self._args.network,
            force=self._args.force,
        )


def _wheel_name(builder: str) -> str:
    return f"wheel-{hashlib.sha256(builder.encode()).hexdigest()[:8]}"


def _summary(errors: Console, outcomes: list[Outcome], *, skipped: int, logs: Path) -> int:
    failed = [one for one in outcomes if one.result == "failed"]
    for one in failed:
        errors.print(
            f"{one.name}: {one.text} ({logs / one.name}.log)",
            markup=False,
            style="red",
            soft_wrap=True,
        )
    kept = sum(one.result == "kept" for one in outcomes)
    built = len(outcomes) - len(failed) - kept
    words = f"{built} built, {kept} there already, {len(failed)} failed"
    errors.print(f"{words}, {skipped} not begun" if skipped else words, highlight=False)
    return int(bool(failed))


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,2}", text, re.ASCII) or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 99")
    return int(text)
