"""The tracer's clients while its calls fail: the process is as without it, its file silent, true or marked."""

import shutil
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from capture_canary.native import tracer_path
from capture_canary.trace import TraceFile
from tests.failing.layer import Bench, Ended, Failure
from tests.tracer.building import Build

COPIES = {1: 6, 2: 9, 3: 12, 4: 1}
"""Of the client's captures, by order."""
SAME = "descriptors: 0, signals: 0\n"


@dataclass(frozen=True)
class Traced:
    """A client that finds CANN one way, traced into a folder."""

    bench: Bench
    traces: Path

    @classmethod
    def build(cls, build: Build, layer: Path, way: str, folder: Path) -> "Traced":
        traces = folder / "traces"
        traces.mkdir()
        environ = {
            "CAPTURE_CANARY_TRACE_DIR": str(traces),
            "LD_LIBRARY_PATH": str(build.folder),  # the layer's dlopen knows no other's own path
        }
        command: list[str | Path] = [build.client(way), "unchanged"]
        libraries = ["libcapturetrace.so"]
        return cls(Bench(layer, command, libraries, environ, preload=[tracer_path()]), traces)

    def untraced(self, folder: Path) -> Ended:
        """What the client does without the tracer."""
        bench = Bench(self.bench.layer, self.bench.command, [], self.bench.environ)
        return bench.run(folder)

    def run(self, folder: Path, failure: Failure) -> str:
        """Let a call fail, and return what is not as promised; "": all is."""
        shutil.rmtree(self.traces)
        self.traces.mkdir()
        ended = self.bench.run(folder, failure)
        return differs(ended, failure) or self._left(failure)

    def _left(self, failure: Failure) -> str:
        for path in self.traces.iterdir():
            if path.suffix == ".trace":
                wrong = untrue(path)
                if wrong:
                    return wrong
            elif not may_stay(path, failure):
                return f"{path.name} of {path.stat().st_size} bytes is left"
        return ""


def differs(ended: Ended, failure: Failure) -> str:
    """Return how the process differs from an untraced one."""
    output = ended.output
    if (
        failure.function == "fstat"
    ):  # a mark's descriptor that may be somebody else's by now stays open
        output = output.replace("descriptors: 1", "descriptors: 0")
    if (ended.code, output, ended.errors) == (0, SAME, ""):
        return ""
    return f"the process is not as untraced: {ended}"


def untrue(path: Path) -> str:
    """Return what of a trace file is not true and not marked as missing either."""
    with closing(TraceFile(path)) as trace:
        captures = {seen.capture.order: seen.capture.h2d_copies for seen in trace.poll()}
        if trace.state == "forged":
            return f"the file is forged: {trace.problem}"
        wrong = {order: n for order, n in captures.items() if COPIES.get(order) != n}
        return f"captures have other copies: {wrong}" if wrong else ""


def may_stay(mark: Path, failure: Failure) -> bool:
    """Return whether a mark may be left: one that warns of nothing, or that could not be removed."""
    return mark.stat().st_size == 0 or failure.function == "unlinkat"
