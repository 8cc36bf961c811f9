"""Builds and runs the fuzzers of the C parts under AddressSanitizer and UndefinedBehaviorSanitizer."""

import subprocess
from pathlib import Path

from tests.hostile.seeds import SEEDS

C = Path(__file__).parent / "c"
DAEMON = Path(__file__).parents[2] / "daemon"
INCLUDES = ("emulator/include", "emulator/runtime", "emulator/hccl", "tracer")
COMMON = (
    *("-std=gnu11", "-D_GNU_SOURCE", "-g", "-O1", "-pthread"),
    *(f"-I{DAEMON / folder}" for folder in INCLUDES),
)
CHECKS = "address,undefined"


def build(name: str, folder: Path, clang: str | None = None) -> Path:
    """Compile a fuzzer: with clang's libFuzzer, which follows coverage, or with a mutator of our own."""
    program = folder / f"fuzz-{name}"
    command = [clang or "cc", *COMMON, "-fno-sanitize-recover=all", "-o", str(program)]
    if clang:
        command += [f"-fsanitize=fuzzer,{CHECKS}", str(C / f"{name}.c")]
    else:
        command += [f"-fsanitize={CHECKS}", str(C / f"{name}.c"), str(C / "mutate.c")]
    subprocess.run(command, check=True, capture_output=True)
    return program


def seeds(name: str, folder: Path) -> Path:
    """Write what a fuzzer begins with; returns the folder of it."""
    corpus = folder / f"corpus-{name}"
    corpus.mkdir()
    for i, seed in enumerate(SEEDS[name]):
        (corpus / str(i)).write_bytes(seed)
    return corpus


def mutate(program: Path, corpus: Path, seed: int, runs: int) -> "subprocess.CompletedProcess[str]":
    """Run a fuzzer that has our mutator; it prints how often it ran, or what it found."""
    files = sorted(map(str, corpus.iterdir()))
    return subprocess.run(
        [program, str(seed), str(runs), *files],
        cwd=program.parent,
        env={"UBSAN_OPTIONS": "print_stacktrace=1"},
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )
