"""Fuzz the C parts with libFuzzer, or with our own mutator where there is no clang: `python -m bench.fuzzing [RUNS]`.

Ends with 1 where something is found, and leaves the input in build/. Prints the rows of docs/reliability.md.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.hostile.fuzzing import build, mutate, seeds
from tests.hostile.seeds import SEEDS

RUNS = 1_000_000
SLOW = {"node": 20, "meeting": 20, "traces": 5}
"""How many times fewer runs: each of these makes system calls."""
LONGEST = 4096


def libfuzzer() -> str | None:
    """Return a clang that has libFuzzer."""
    for name in ("clang", *(f"clang-{version}" for version in range(20, 12, -1))):
        found = shutil.which(name)
        if found:
            return found
    return None


def fuzz(name: str, runs: int, folder: Path, clang: str | None) -> bool:
    """Run one fuzzer, print its row; False: it found something."""
    begin = time.monotonic()
    program, corpus = build(name, folder, clang), seeds(name, folder)
    if clang is None:
        done = mutate(program, corpus, 1, runs)
    else:
        artifacts = Path("build", f"fuzz-{name}-").absolute()
        artifacts.parent.mkdir(exist_ok=True)
        options = [
            f"-runs={runs}",
            "-seed=1",
            f"-max_len={LONGEST}",
            f"-artifact_prefix={artifacts}",
        ]
        command = [str(program), *options, str(corpus)]
        done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    edges = re.findall(r"cov: (\d+)", done.stderr)
    found = "nothing" if done.returncode == 0 else "something"
    seconds = time.monotonic() - begin
    print(
        f"| {name} | {runs:,} | {edges[-1] if edges else '-'} | {found} | {seconds:.0f} |",
        flush=True,
    )
    if done.returncode != 0:
        print(done.stderr[-6000:], flush=True)
    return done.returncode == 0


def main(runs: int) -> int:
    """Run all fuzzers."""
    clang = libfuzzer()
    print(f"{Path(clang).name if clang else 'our own mutator'}, ASan and UBSan")
    print("| input | executions | edges | found | s |\n| --- | --- | --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        good = [fuzz(name, runs // SLOW.get(name, 1), Path(scratch), clang) for name in SEEDS]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS))
