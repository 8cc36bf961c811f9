"""`python -m bench.mutation [MODULE …]`: which changes of a module no test notices; 1 if one is not explained.

A MODULE is a file or folder of the package, `trend` or `gate/decide.py`. For each mutant the tests that run its line
are run until one fails. Survivors that are no fault stand in explained.toml, each with its reason.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from bench.mutation.mutants import Mutant, lines_of, mutants_of
from bench.mutation.sandbox import PACKAGE, ROOT, Covered, outcome, record

SOURCES = ROOT / "daemon" / PACKAGE
EXPLAINED = Path(__file__).with_name("explained.toml")
MEMORY = ROOT / "build" / "mutation"
DOCS = ROOT / "docs" / "mutation.md"
AREAS = {
    "gate": ("decide", "model", "latch", "collect", "choose", "compat"),
    "stack": ("versions", "identity", "exposure", "cann"),
    "trend": (),
}
"""What is mutated by default, by folder; no modules named: all. Tested by the files of that name, or by all."""
QUICK = 0.2
"""Seconds: of tests that take less, those named after the module come first."""
SLACK, TIMES = 10.0, 5.0
"""A mutant's tests may take this many seconds, and this many times what they take without."""


class Explained(msgspec.Struct, forbid_unknown_fields=True):
    """A mutant that may survive."""

    was: str
    becomes: str
    why: str


class Result(NamedTuple):
    """What came of a module."""

    module: str
    mutants: int
    run: int
    counts: Counter[str]
    survivors: list[Mutant]
    stale: list[Explained]
    """Explained, and killed or gone."""


def examine(
    path: Path,
    covered: Covered,
    known: Sequence[Explained],
    *,
    sample: int,
    again: bool,
    scratch: Path,
) -> Result:
    """Run a module's mutants; with `again`, not those that were killed the last time."""
    module = str(path.relative_to(SOURCES))
    everything = sorted(mutants_of(path))
    # The same mutants each time, and most of them again after a change.
    chosen = random.Random(module).sample(everything, min(sample, len(everything)))  # noqa: S311
    counts: Counter[str] = Counter()
    survivors: list[Mutant] = []
    lived: list[tuple[str, str]] = []
    reasons = {(one.was.strip(), one.becomes.strip()): one for one in known}
    memory = MEMORY / f"{module}.json"
    killed: dict[str, str] = (
        msgspec.json.decode(memory.read_bytes()) if again and memory.exists() else {}
    )
    for mutant in sorted(chosen):
        if (key := f"{mutant.was}\n{mutant.becomes}") in killed:
            counts[killed[key]] += 1
            continue
        tests = list(tests_of(mutant, path, covered))
        limit = SLACK + TIMES * sum(covered.seconds[test] for test in tests)
        end: str = (
            outcome(path, mutant.source, tests, seconds=limit, scratch=scratch)
            if tests
            else "survived"
        )
        if end == "survived":
            lived.append((mutant.was, mutant.becomes))
            if lived[-1] in reasons:
                end = "explained"
            else:
                survivors.append(mutant)
                print(shown(module, mutant), flush=True)
        counts[end] += 1
        if end in {"killed", "timeout"}:
            killed[key] = end
    for was, becomes in lived:
        killed.pop(f"{was}\n{becomes}", None)
    memory.parent.mkdir(parents=True, exist_ok=True)
    memory.write_bytes(msgspec.json.encode(killed))
    stale = (
        [one for pair, one in reasons.items() if pair not in lived]
        if len(chosen) == len(everything)
        else []
    )
    return Result(module, len(everything), len(chosen), counts, survivors, stale)


def tests_of(mutant: Mutant, path: Path, covered: Covered) -> Iterator[str]:
    """Yield the tests that run the statement, the likeliest first; all there are where it runs at import only."""
    lines = covered.tests.get(str(path), {})
    statement = lines_of(path.read_text()).get(mutant.line, range(mutant.line, mutant.line + 1))
    found = {test for line in statement for test in lines.get(line, ())}
    if not found and any(line in lines for line in statement):
        found = {*covered.seconds}
    own = f"test_{path.name}::"
    yield from sorted(
        found,
        key=lambda test: (covered.seconds[test] > QUICK, own not in test, covered.seconds[test]),
    )


def tests_in(area: str) -> list[str]:
    """Return the files of an area's tests: where only some modules are mutated, the others' may be slow."""
    folder = ROOT / "tests" / area
    own = [folder / f"test_{name}.py" for name in AREAS[area]]
    return [str(one) for one in (own if all(one.exists() for one in own) else [])] or [str(folder)]


def shown(module: str, mutant: Mutant) -> str:
    """Return a mutant as it is to be put into explained.toml."""
    return f"\n[[\"{module}\"]]  # line {mutant.line}\nwas = '''{mutant.was}'''\nbecomes = '''{mutant.becomes}'''"


def row(result: Result) -> str:
    """Return a module's line of the table."""
    counts = result.counts
    cells = [
        f"`{result.module}`",
        result.mutants,
        result.run,
        counts["killed"] + counts["timeout"],
        counts["timeout"],
        counts["explained"],
        counts["survived"],
        time.strftime("%Y-%m-%d"),
    ]
    return f"| {' | '.join(map(str, cells))} |"


def write(rows: Sequence[str]) -> None:
    """Put rows into the table of docs/mutation.md, each in the place of its module's."""
    lines = DOCS.read_text().splitlines()
    head = next(n for n, line in enumerate(lines) if line.startswith("| --- "))
    after = next((n for n in range(head, len(lines)) if not lines[n].startswith("|")), len(lines))
    table = {line.split("|")[1]: line for line in [*lines[head + 1 : after], *rows]}
    lines[head + 1 : after] = sorted(table.values())
    DOCS.write_text("\n".join(lines) + "\n")


def explained() -> dict[str, list[Explained]]:
    """Return what explained.toml says, by module."""
    return msgspec.toml.decode(EXPLAINED.read_bytes(), type=dict[str, list[Explained]])


def modules(wanted: Sequence[str]) -> dict[str, list[Path]]:
    """Return the files to mutate, by area."""
    found: dict[str, list[Path]] = {}
    for area, names in AREAS.items():
        files = [SOURCES / area / f"{name}.py" for name in names] or sorted(
            one for one in (SOURCES / area).glob("*.py") if one.name != "__init__.py"
        )
        chosen = [one for one in files if not wanted or area in wanted or _name(one) in wanted]
        if chosen:
            found[area] = chosen
    known = {*AREAS, *(_name(one) for files in found.values() for one in files)}
    if unknown := {*wanted} - known:
        raise SystemExit(f"no such module: {', '.join(sorted(unknown))}")
    return found


def _name(path: Path) -> str:
    return str(path.relative_to(SOURCES))


def main() -> int:
    """Run the mutants, print survivors and a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=sys.maxsize, help="at most, of a module")
    parser.add_argument("--again", action="store_true", help="only what lived the last time")
    parser.add_argument("--write", action="store_true", help=f"into {DOCS.relative_to(ROOT)}")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"of {', '.join(AREAS)}")
    args = parser.parse_args()
    known, rows, failed = explained(), [], False
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        for area, files in modules(args.modules).items():
            covered = record(tests_in(area), scratch)
            for path in files:
                reasons = known.get(_name(path), [])
                found = examine(
                    path,
                    covered,
                    reasons,
                    sample=args.sample,
                    again=args.again,
                    scratch=scratch,
                )
                rows.append(row(found))
                print(rows[-1], flush=True)
                for one in found.stale:
                    print(f"{found.module}: explained, but killed or gone: {one.becomes}")
                failed |= bool(found.survivors or found.stale)
                if args.write:
                    write(rows[-1:])
    return failed


if __name__ == "__main__":
    sys.exit(main())
