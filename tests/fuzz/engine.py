"""One target under atheris, in a process of its own: `python -m tests.fuzz.engine MODULE TARGET [libFuzzer's options]`.

libFuzzer ends the process itself; what it prints is for the driver.
"""

import gc
import importlib
import os
import random
import sys
import traceback
from types import FrameType, FunctionType
from typing import Any

from tests.fuzz.mutate import tree_mutant
from tests.fuzz.target import Target

FOLLOWED = frozenset(
    {"capture_canary", "csv", "h11", "prometheus_client", "starlette", "tomllib", "uvicorn", "yaml"}
)
"""Packages whose branches guide the fuzzer: ours, and those that read for us."""


def touched(target: Target) -> set[str]:
    """Return the modules that reading the seeds goes through: what the fuzzer is to be guided by."""
    found: set[str] = set()

    def note(frame: FrameType, _event: str, _argument: object) -> None:
        found.add(str(frame.f_globals.get("__name__")))

    sys.setprofile(note)
    for seed in target.seeds():
        target.feed(seed)
    sys.setprofile(None)
    return {name for name in found if name.split(".")[0] in FOLLOWED}


def main() -> None:
    """Fuzz until libFuzzer has enough."""
    atheris: Any = importlib.import_module("atheris")  # of the group `fuzz` alone; ships no types
    module, name = sys.argv[1:3]
    target: Target = next(
        one for one in importlib.import_module(module).TARGETS if one.name == name
    )
    modules = touched(target)
    # An editable install's own finder comes before that of instrument_imports().
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__module__ in modules:
            atheris.instrument_func(one)

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        chance = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
        made = tree_mutant(data, chance) if chance.random() < 0.5 else None
        return made if made is not None and len(made) <= most else atheris.Mutate(data, most)

    def feed(data: bytes) -> None:
        try:
            target.feed(data)
        except Exception:  # noqa: BLE001  # any is a fault
            traceback.print_exc()
            os.abort()  # an exit would wait for threads of the server, and the input be lost

    more = {"custom_mutator": mutate} if target.json else {}
    atheris.Setup([sys.argv[0], *sys.argv[3:]], feed, **more)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
