"""What a target is: a function that reads foreign bytes, what it may raise, and where a fuzzer begins."""

import functools
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

CRASHES = Path(__file__).parent / "crashes"
"""Inputs that once were a fault, by target; the fast tests feed all of them."""


class Target(NamedTuple):
    """Reads bytes that somebody else wrote. What is not an orderly answer, or one of `raises`, is a fault."""

    name: str
    reads: str
    """What of, for the page."""
    run: Callable[[bytes], object]
    """Asserts what must hold of an answer."""
    seeds: Callable[[], Iterable[bytes]]
    raises: tuple[type[Exception], ...] = ()
    tokens: tuple[bytes, ...] = ()
    """Words of the format, for who mutates."""
    longest: int = 4096
    """Bytes of an input."""
    json: bool = False
    """Its inputs are JSON: trees are mutated, too."""
    mutants: int = 200
    """Fed by the fast tests; fewer where each takes milliseconds."""

    def feed(self, data: bytes) -> None:
        """Read these bytes once."""
        try:
            self.run(data)
        except self.raises:
            return

    def kept(self) -> list[Path]:
        """Return the inputs that once were a fault."""
        return sorted((CRASHES / self.name).glob("*"))


def memory() -> str | None:
    """Return a folder whose files cost no disk, where there is one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - folders of our own in it


@functools.cache
def _scratch() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="capture-canary-fuzz-", dir=memory())


def scratch(name: str) -> Path:
    """Return a folder of this process that goes with it."""
    folder = Path(_scratch().name) / name
    folder.mkdir(exist_ok=True)
    return folder


def put(path: Path, data: bytes) -> Path:
    """Have a file of these bytes, in place: no folder grows."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)
    return path


@contextmanager
def patience(seconds: int) -> Iterator[None]:
    """End what hangs; no measure of how fast anything is."""

    def give_up(_number: int, _frame: object) -> None:
        raise TimeoutError(f"not done in {seconds} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
