"""Feeds the reader with mutated trace files until it raises: `python -m tests.trace.fuzz_reader [SECONDS] [SEED]`.

Coverage-guided where atheris is installed, random mutation otherwise.
"""

import importlib
import random
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.trace.writing import whole, write

from capture_canary.trace import TraceFile


def feed(folder: Path, data: bytes) -> None:
    """Read a file of these bytes; anything but an orderly answer is a fault."""
    with closing(TraceFile(write(folder, data))) as trace:
        for _ in range(2):
            trace.poll()
        if trace.state not in {"live", "finished", "torn", "forged"}:
            raise AssertionError(trace.state)


def mutate(data: bytearray, chance: random.Random) -> None:
    """Change, insert, cut or repeat a piece."""
    at = chance.randrange(len(data))
    match chance.randrange(4):
        case 0:
            data[at] = chance.randrange(256)
        case 1:
            data[at:at] = chance.randbytes(chance.randrange(1, 64))
        case 2:
            del data[at : at + chance.randrange(1, 400)]
        case _:
            data[at:at] = data[at : at + 304]


def at_random(folder: Path, seconds: float, seed: int) -> int:
    """Feed mutants of a valid file; returns how many."""
    chance = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
    end, fed = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        data = bytearray(whole(range(1, chance.randrange(2, 200))))
        for _ in range(chance.randrange(1, 6)):
            mutate(data, chance)
        feed(folder, bytes(data))
        fed += 1
    return fed


def main() -> None:
    """Fuzz."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        with suppress(ImportError):
            atheris: Any = importlib.import_module("atheris")
            atheris.instrument_all()
            atheris.Setup(sys.argv, lambda data: feed(folder, data))
            atheris.Fuzz()
        seconds, seed = (*map(int, sys.argv[1:]), 30, 0)[:2]
        sys.stdout.write(f"{at_random(folder, seconds, seed)} files read (seed {seed})\n")


if __name__ == "__main__":
    main()
