"""What the tracer costs: instructions and ns a copy, beside ltrace and a bpftrace uprobe, and at a process's start."""

import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from capture_canary.native import tracer_path

SOURCE = Path(__file__).parent / "c" / "copies.c"
COPIES = 10_000
LIMITS = {"counting": 40, "with time": 60}
"""Instructions a copy inside a capture that are allowed."""
WITHOUT, COUNTING, TIMED = "no tracer", "counting", "with time"


class Bench:
    """The built client, and ways to run it."""

    def __init__(self, folder: Path) -> None:
        """Build the client and its stand-in for CANN."""
        self.folder = folder
        self.library = folder / "libacl_rt.so"
        self.client = folder / "copies"
        gcc = shutil.which("gcc") or "gcc"
        library = [
            "-DCANN",
            "-shared",
            "-fPIC",
            "-Wl,-soname,libacl_rt.so",
            "-o",
            str(self.library),
        ]
        client = [f"-L{folder}", "-lacl_rt", "-Wl,-rpath,$ORIGIN", "-o", str(self.client)]
        subprocess.run([gcc, "-O2", SOURCE, *library], check=True)
        subprocess.run([gcc, "-O2", SOURCE, *client], check=True)

    def environment(self, watch: str) -> dict[str, str]:
        """Return the environment of a process watched in this way."""
        if watch == WITHOUT:
            return dict(os.environ)
        time_wish = {COUNTING: "0", TIMED: "counter"}[watch]
        return {
            **os.environ,
            "LD_PRELOAD": str(tracer_path()),
            "CAPTURE_CANARY_TRACE_DIR": str(self.folder),
            "CAPTURE_CANARY_TRACE_TIME": time_wish,
        }

    def run(self, watch: str, *, captured: bool, count: int, before: Sequence[str] = ()) -> str:
        """Run the client behind a command; returns what it and the command print."""
        client = [str(self.client), str(int(captured)), str(count)]
        command = [*before, " ".join(client)] if before[-1:] == ["-c"] else [*before, *client]
        done = subprocess.run(
            command,
            env=self.environment(watch),
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.stdout + done.stderr

    def instructions(self, watch: str, *, captured: bool) -> float:
        """Return the instructions a copy, the client's loop and the stand-in's own included."""
        callgrind = [
            shutil.which("valgrind") or "valgrind",
            "--tool=callgrind",
            "--toggle-collect=copies",
            f"--callgrind-out-file={self.folder}/callgrind.out",
        ]
        printed = self.run(watch, captured=captured, count=COPIES, before=callgrind)
        found = re.search(r"Collected : (\d+)", printed)
        assert found is not None, printed
        return int(found.group(1)) / COPIES

    def nanoseconds(self, watch: str, count: int, before: Sequence[str] = ()) -> float:
        """Return the ns a captured copy."""
        lines = self.run(watch, captured=True, count=count, before=before).splitlines()
        return float(next(line for line in lines if re.fullmatch(r"\d+\.\d\d", line)))


def instruction_table(bench: Bench) -> None:
    """Print instructions a copy, in a capture and outside."""
    print(
        "| instructions a copy (callgrind) | in a capture | limit | outside captures |\n| --- | --- | --- | --- |"
    )
    base = {captured: bench.instructions(WITHOUT, captured=captured) for captured in (True, False)}
    for watch in (COUNTING, TIMED):
        cost = {c: bench.instructions(watch, captured=c) - base[c] for c in (True, False)}
        print(f"| {watch} | {cost[True]:.1f} | {LIMITS[watch]} | {cost[False]:.1f} |")
        assert cost[True] < LIMITS[watch], f"{watch}: {cost[True]} instructions a copy"


def time_table(bench: Bench) -> None:
    """Print ns a copy for each way to watch, all in this one run; the best of several, the machine being shared."""
    uprobe = f"uprobe:{bench.library}:aclrtMemcpy {{ @copies = count(); }}"
    ways: dict[str, tuple[str, int, list[str]]] = {
        "no tracer": (WITHOUT, 1_000_000, []),
        "tracer, counting": (COUNTING, 1_000_000, []),
        "tracer, with time": (TIMED, 1_000_000, []),
        "bpftrace uprobe": (WITHOUT, 20_000, ["bpftrace", "-e", uprobe, "-c"]),
        "ltrace": (WITHOUT, 2_000, ["ltrace", "-c", "-e", "aclrtMemcpy"]),
    }
    print("\n| ns a copy | | over none |\n| --- | --- | --- |")
    none = 0.0
    for name, (watch, count, before) in ways.items():
        if before and shutil.which(before[0]) is None:
            print(f"| {name} | not installed | |")
            continue
        try:
            best = min(bench.nanoseconds(watch, count, before) for _ in range(3 if before else 9))
        except (subprocess.SubprocessError, StopIteration) as error:
            said = getattr(error, "stderr", "") or str(error)
            print(f"| {name} | cannot run here: {said.strip().splitlines()[-1][:90]} | |")
            continue
        none = none or best
        print(f"| {name} | {best:.1f} | {best - none:+.1f} |")


def start_table(bench: Bench) -> None:
    """Print what a process that never captures pays at its start, turn by turn with and without."""
    true = shutil.which("true") or "/bin/true"
    seconds: dict[str, list[float]] = {WITHOUT: [], TIMED: []}
    for _ in range(200):
        for watch, taken in seconds.items():
            environment = bench.environment(watch)
            begin = time.perf_counter()
            subprocess.run([true], env=environment, check=True)
            taken.append(time.perf_counter() - begin)
    typical = {watch: statistics.median(taken) for watch, taken in seconds.items()}
    more = (typical[TIMED] - typical[WITHOUT]) * 1e6
    print("\n| start of /bin/true | median, us |\n| --- | --- |")
    print(
        f"| no tracer | {typical[WITHOUT] * 1e6:.0f} |\n| tracer preloaded | {typical[TIMED] * 1e6:.0f} ({more:+.0f}) |"
    )


def main() -> None:
    """Print all tables."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        instruction_table(bench)
        time_table(bench)
        start_table(bench)


if __name__ == "__main__":
    main()
