"""Let every allocation and system call of the C parts fail, one a run: `python -m bench.failing [NAME…]`.

Ends with 1 where a promise is broken. Prints the rows of docs/reliability.md; half an hour.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from tests.failing import emulator, traced
from tests.failing.emulator import SANITIZER_OPTIONS, UNLINKS, Builds, Neighbour
from tests.failing.layer import Bench, Failure, build_layer, variants
from tests.tracer.building import WAYS, Build

Run = Callable[[Path, Failure], str]


@dataclass(frozen=True)
class Component:
    """What is swept: its name, its calls, and what a run with one of them failing breaks."""

    name: str
    bench: Bench
    run: Run
    often: int = 1_000_000
    """How many calls of one place fail, one by one; the first and the last ones."""

    def failures(self, folder: Path) -> list[Failure]:
        """Return what is to fail, of the calls that a run makes where nothing does."""
        calls = self.bench.calls(folder)
        last = {call.site: call.number for call in calls}
        half = self.often // 2
        chosen = [c for c in calls if c.number <= half or c.number > last[c.site] - half]
        return list(variants(chosen))


def of_emulator(name: str, bench: Bench, often: int) -> Component:
    """Return a client of the emulated CANN as a component."""

    def run(folder: Path, failure: Failure) -> str:
        return emulator.run(bench, folder, failure)

    return Component(name, bench, run, often)


def components(folder: Path) -> Iterator[Component]:
    """Yield all that is swept; what is built is built when its turn comes."""
    layer = build_layer(folder)
    build = Build(folder / "clients")
    build.folder.mkdir()
    for way in WAYS:
        (folder / way).mkdir()
        seen = traced.Traced.build(build, layer, way, folder / way)
        yield Component(f"tracer, {way}", seen.bench, seen.run)
    release = Builds(folder / "release")
    yield of_emulator("operators", release.bench("operators"), 1_000_000)
    yield of_emulator("device", release.bench("device"), 1_000_000)
    yield of_emulator("ranks", release.bench("ranks"), 6)
    yield of_emulator("ranks, PR 2405 and RoCE", release.bench("ranks", UNLINKS), 2)
    with closing(Neighbour(release.bench("device"), folder)) as neighbour:

        def beside(run_folder: Path, failure: Failure) -> str:
            broken = emulator.run(neighbour.bench, run_folder, failure)
            return broken or neighbour.robbed()

        yield Component("device beside a neighbour", neighbour.bench, beside, 2)
    sanitized = Builds(folder / "sanitized", "address,undefined")
    for client in ("operators", "device", "ranks"):
        bench = sanitized.bench(client, **SANITIZER_OPTIONS)
        yield of_emulator(f"{client}, ASan, UBSan and LSan", replace(bench, deadline=60), 2)


def sweep(component: Component, folder: Path) -> int:
    """Let a component's calls fail, one a run; return how many runs broke a promise."""
    begin = time.monotonic()
    failures = component.failures(folder / "calls")
    places = len({failure.site for failure in failures})
    broken = 0
    for failure in failures:
        wrong = component.run(folder / "run", failure)
        if wrong:
            broken += 1
            print(f"{component.name}: {failure}: {wrong}", flush=True)
    seconds = time.monotonic() - begin
    row = f"| {component.name} | {places} | {len(failures)} | {broken} | {seconds:.0f} |"
    print(row, flush=True)
    return broken


def main(names: list[str]) -> int:
    """Sweep the components that are named, or all."""
    broken = 0
    print(
        "| client | places | failures | broken | s |\n| --- | --- | --- | --- | --- |", flush=True
    )
    with tempfile.TemporaryDirectory() as scratch:
        for i, component in enumerate(components(Path(scratch))):
            if not names or any(name in component.name for name in names):
                broken += sweep(component, Path(scratch) / f"sweep-{i}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
