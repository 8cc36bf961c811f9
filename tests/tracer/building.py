"""Builds the tracer and its clients in C, and runs them."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

import pytest

from capture_canary.trace import ProcessFacts, TracedCapture, TraceFile

SOURCES = Path(__file__).parent / "c"
TRACER_SOURCES = Path(__file__).parents[2] / "daemon" / "tracer"
SYMBOLS = TRACER_SOURCES / "symbols.c"
FLOOR = TRACER_SOURCES.parent / "glibc_floor.h"


@dataclass(frozen=True)
class Build:
    """A folder of built clients, and the compiler that built them."""

    folder: Path
    compiler: str = "gcc"
    flags: Sequence[str] = ()

    def compile(self, output: str, sources: Sequence[str | Path], *options: str) -> Path:
        target = self.folder / output
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            paths = [str(SOURCES / source) for source in sources]
            command = [
                self.compiler,
                "-std=gnu11",
                "-g",
                "-O1",
                "-Wall",
                *self.flags,
                "-o",
                str(target),
                *paths,
            ]
            command += [f"-L{self.folder}", *options]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
        return target

    def library(self, name: str, sources: Sequence[str | Path], *options: str) -> Path:
        flags = ("-shared", "-fPIC", f"-Wl,-soname,{Path(name).name}", "-Wl,-rpath,$ORIGIN")
        return self.compile(name, sources, *flags, *options)

    def cann(self, below: str = "") -> Path:
        """Build the stand-in for CANN, and return its folder."""
        self.library(f"{below}libacl_rt.so", ["acl_rt.c"])
        links = ("-Wl,--no-as-needed", f"-L{self.folder / below}", "-lacl_rt")
        self.library(f"{below}libascendcl.so", [], *links)
        self.library(f"{below}libhccl.so", ["hccl.c"], *links)
        return self.folder / below

    def tracer(self, *flags: str) -> Path:
        """Build the tracer as no release does."""
        folder = "tracer" + "".join(flags).replace("/", "")
        common = (*flags, "-fPIC", "-fvisibility=hidden", "-include", str(FLOOR))
        # Its dlsym runs before a sanitizer's runtime is ready to be called.
        bare = replace(self, flags=()).compile(f"{folder}/symbols.o", [SYMBOLS], *common, "-c")
        sources = [bare, *(path for path in TRACER_SOURCES.glob("*.c") if path != SYMBOLS)]
        links = ("-Wl,--no-as-needed", "-l:libdl.so.2")
        return self.library(f"{folder}/libcapturetrace.so", sources, *common, *links)

    def client(self, way: str) -> Path:
        """Build the client that finds CANN in one of the WAYS."""
        self.cann()
        lookup = {"handle": ("-DBY_HANDLE",), "default": ("-DBY_DEFAULT",)}.get(way, ())
        # A client that asks RTLD_DEFAULT is itself linked to CANN, as torch-npu is.
        links = (
            () if way == "handle" else ("-Wl,--no-as-needed", "-lascendcl", "-lhccl", "-lacl_rt")
        )
        rpath = ("-Wl,-rpath,$ORIGIN", "-lpthread", "-ldl")
        if way in ("linked", "handle"):
            return self.compile(f"client-{way}", ["main.c", "client.c"], *lookup, *links, *rpath)
        plugin = self.library(f"libplugin-{way}.so", ["client.c"], *lookup, *links, *rpath)
        return self.compile(f"client-{way}", ["main.c"], f'-DPLUGIN="{plugin}"', *rpath)


WAYS = ("linked", "handle", "default", "local")
"""How a client finds CANN: linked; dlsym on a handle; dlsym on RTLD_DEFAULT; linked, but loaded with RTLD_LOCAL."""


@dataclass
class Run:
    """What a traced command left behind."""

    code: int
    output: str
    errors: str
    folder: Path
    traces: list[TraceFile] = field(default_factory=list)
    captures: list[list[TracedCapture]] = field(default_factory=list)

    @property
    def only(self) -> list[TracedCapture]:
        """The captures of the one process that was traced."""
        assert [trace.problem for trace in self.traces] == [None]
        return self.captures[0]

    @property
    def facts(self) -> list[ProcessFacts]:
        return [trace.facts for trace in self.traces if trace.facts is not None]

    @property
    def copies(self) -> list[int | None]:
        return [capture.capture.h2d_copies for capture in self.only]


def run_traced(
    folder: Path, preload: Sequence[Path], command: Sequence[str | Path], **environment: str
) -> Run:
    """Run a command with libraries preloaded, and read the traces that it left."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    variables = {
        "LD_PRELOAD": ":".join(map(str, preload)),
        "CAPTURE_CANARY_TRACE_DIR": str(folder),
    }
    done = subprocess.run(
        [str(word) for word in command],
        env=kept | variables | environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    run = Run(done.returncode, done.stdout, done.stderr, folder)
    for path in sorted(folder.glob("*.trace")):
        if path.is_symlink():
            continue
        with closing(TraceFile(path)) as trace:
            run.captures.append(trace.poll())
            run.traces.append(trace)
    return run


def miss(reason: str) -> NoReturn:
    """Skip, naming what is missing; in CI nothing may be."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def need(command: str) -> str:
    """Return the path of a tool."""
    return shutil.which(command) or miss(f"{command} is not installed")
