"""Let one call of libc fail that a library under test makes: count the calls, then run again for each."""

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

C = Path(__file__).parent / "c"
Mode = Literal["once", "from", "short"]
MOVING = ("read", "pwrite64", "send", "recv", "getrandom")
"""What may move fewer bytes than asked."""
INTERRUPTIBLE = (
    *("read", "recv", "recvmsg", "send", "sendmsg", "accept4", "connect", "poll", "flock", "open"),
    *("openat", "getrandom", "futex"),
)
"""What a signal may end with EINTR."""
EINTR = 4


def compile_c(to: Path, source: str, *options: str) -> Path:
    """Compile a file of ours; a call must stay one, to be known by where it returns to."""
    to.parent.mkdir(parents=True, exist_ok=True)
    command = ["cc", "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-fno-optimize-sibling-calls"]
    subprocess.run([*command, "-o", str(to), str(C / source), *options], check=True)
    return to


def build_layer(folder: Path, *options: str) -> Path:
    """Compile the layer: to be preloaded, or with -DWRAPS to be linked to."""
    return compile_c(folder / "failing.so", "failing.c", "-shared", "-fPIC", *options, "-ldl")


def functions(layer: Path) -> list[str]:
    """Return the functions of libc that a layer lets fail."""
    command = ["nm", "-D", "--defined-only", str(layer)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    names = (line.split()[-1].removeprefix("__wrap_") for line in done.stdout.splitlines())
    return [name for name in names if name not in {"failingStop", "free"}]


@dataclass(frozen=True)
class Failure:
    """A call that is to fail: which function, from where in which library, the how-manieth from there, and how."""

    function: str
    site: str
    number: int
    mode: Mode = "once"
    errno: int = 0

    def __str__(self) -> str:
        how = f" ({self.mode}{f', errno {self.errno}' if self.errno else ''})"
        return f"{self.function} {self.number} at {self.site}{how}"

    @property
    def environ(self) -> dict[str, str]:
        site = {"FAILING_SITE": f"{self.site}:{self.number}", "FAILING_MODE": self.mode}
        return site | ({"FAILING_ERRNO": str(self.errno)} if self.errno else {})


@dataclass(frozen=True)
class Ended:
    """What a run came to. `code` None: it had to be killed at its deadline."""

    code: int | None
    output: str
    errors: str
    told: str
    """What the layer reported: each call, or the one that failed."""


@dataclass(frozen=True)
class Bench:
    """A client of the libraries under test, and the layer to preload."""

    layer: Path | None
    """To be preloaded; None: the libraries are linked to it."""
    command: Sequence[str | Path]
    libraries: Sequence[str]
    environ: Mapping[str, str]
    preload: Sequence[Path] = ()
    """Before the layer: what is under test itself."""
    node: Path | None = None
    """The emulated node, where it is not the run's own."""
    deadline: float = 60

    def run(self, folder: Path, failure: Failure | None = None) -> Ended:
        """Run the client in a folder of its own, where one call fails, or none does."""
        folder.mkdir(parents=True, exist_ok=True)
        report = folder / "report"
        report.unlink(missing_ok=True)
        preload = (*self.preload, self.layer) if self.layer else self.preload
        environ = {
            **self.environ,
            "PATH": os.environ["PATH"],
            "LD_PRELOAD": ":".join(map(str, preload)),
            "CAPTURE_CANARY_EMULATE_NODE": str(self.node or folder / "node"),
            "FAILING_LIBRARIES": ":".join(self.libraries),
            "FAILING_REPORT": str(report),
            **(failure.environ if failure else {}),
        }
        child = subprocess.Popen(
            [str(word) for word in self.command],
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            output, errors = child.communicate(timeout=self.deadline)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            output, errors = child.communicate()
            return Ended(None, output, errors, _text(report))
        return Ended(child.returncode, output, errors, _text(report))

    def calls(self, folder: Path) -> list[Failure]:
        """Return every call that the libraries make while nothing fails."""
        ended = self.run(folder)
        assert ended.code == 0, f"with nothing failing: {ended}"
        lines = (line.split() for line in ended.told.splitlines())
        found = [Failure(function, site, int(number)) for function, site, number in lines]
        assert found, "no call was counted"
        return found


def _text(report: Path) -> str:
    return report.read_text() if report.exists() else ""


def variants(calls: Sequence[Failure]) -> Iterator[Failure]:
    """Yield each call failing once, failing from there on, interrupted, and moving half, where it can."""
    for call in calls:
        yield call
        yield replace(call, mode="from")
        if call.function in INTERRUPTIBLE:
            yield replace(call, errno=EINTR)
        if call.function in MOVING:
            yield replace(call, mode="short")


def first_of_each(calls: Sequence[Failure]) -> list[Failure]:
    """Return the first call of each place: the fast part of a sweep."""
    return [call for call in calls if call.number == 1]
