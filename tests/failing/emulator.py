"""The clients of the emulated CANN that live through failing calls, and what becomes of their promise."""

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from capture_canary.native import emulated_cann_dir
from tests.failing.layer import Bench, Ended, Failure, build_layer, compile_c, functions

ROOT = Path(__file__).parents[2]
LIBRARIES = (
    *("libruntime.so", "libacl_rt.so", "libacl_rt_impl.so", "libhccl.so", "libhcomm.so"),
    *("libhccl_plf.so", "libnnopbase.so", "libacl_op_compiler.so"),
)
GROWS, UNLINKS = "cann=9.0.0", "cann=9.1.0,hcomm=9.1.0-pr2405,roce=1"
LINKED = {
    "device": ("-lacl_rt",),
    "ranks": ("-lacl_rt", "-lhccl", "-lhcomm", "-pthread"),
    "operators": ("-lnnopbase", "-lacl_op_compiler"),
}


class Builds:
    """The emulated CANN as it is installed, or built with a sanitizer, and its clients."""

    def __init__(self, folder: Path, sanitize: str = "") -> None:
        self.folder = folder
        self.sanitize = (f"-fsanitize={sanitize}", "-fno-omit-frame-pointer") if sanitize else ()
        folder.mkdir(parents=True, exist_ok=True)
        if sanitize:
            self.layer = None
            self.cann = self._sanitized(sanitize)
        else:
            self.layer = build_layer(folder)
            self.cann = emulated_cann_dir()

    def _sanitized(self, sanitize: str) -> Path:
        """Build what the release builds, linked to the layer: a sanitizer wants to be preloaded first."""
        layer = build_layer(self.folder, "-DWRAPS")
        wraps = [f"-Wl,--wrap={name}" for name in functions(layer)]
        flags = " ".join(["-Wl,--no-as-needed", str(layer), *wraps])
        build = self.folder / "build"
        subprocess.run(
            [
                *("cmake", "-S", str(ROOT / "daemon"), "-B", str(build), f"-DSANITIZE={sanitize}"),
                *("-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_SHARED_LINKER_FLAGS={flags}"),
            ],
            check=True,
            capture_output=True,
        )
        targets = ["hccl", "nnopbase", "acl_op_compiler"]
        command = ["cmake", "--build", str(build), "--target", *targets]
        subprocess.run(command, check=True, capture_output=True)
        return build / "emulated"

    def bench(self, client: str, settings: str = GROWS, **environ: str) -> Bench:
        """Build a client of this CANN; what HCCL waits for is soon over."""
        libraries = self.cann / "lib64"
        rpath = (f"-Wl,-rpath,{libraries}:{self.folder}", f"-Wl,-rpath-link,{libraries}")
        options = (*self.sanitize, f"-L{libraries}", *LINKED[client], *rpath, "-ldl")
        command = compile_c(self.folder / client, f"{client}.c", *options)
        given: Mapping[str, str] = {
            "CAPTURE_CANARY_EMULATE": settings,
            "HCCL_CONNECT_TIMEOUT": "3",
            "HCCL_EXEC_TIMEOUT": "20",
            **environ,
        }
        return Bench(self.layer, [command], LIBRARIES, given)

    def npu_smi(self, node: Path) -> Bench:
        """Return the tool, looking at somebody's node."""
        tool = self.cann / "bin" / "npu-smi"
        return Bench(
            self.layer, [tool, "info"], ["npu-smi"], {"CAPTURE_CANARY_EMULATE": GROWS}, node=node
        )


def broken(ended: Ended) -> str:
    """Return how a client's promise was broken; "": it was kept."""
    if ended.code is None:
        return "it hangs"
    if ended.code != 0:
        return f"it ended with {ended.code}: {ended.errors[-2000:]}"
    return f"it said {ended.errors!r}" if ended.errors else ""


class Neighbour:
    """Another process on the node, which holds memory there that nobody may take."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.node = folder / "node"
        self.bench = replace(bench, node=self.node)
        self.process = subprocess.Popen(
            [str(bench.command[0]), "hold"],
            env={**bench.environ, "CAPTURE_CANARY_EMULATE_NODE": str(self.node)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.first = self._line()

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def robbed(self) -> str:
        """Return what it no longer holds; "": it holds what it held."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        now = self._line()
        return "" if now == self.first else f"the neighbour holds {now} instead of {self.first}"

    def close(self) -> None:
        self.process.communicate("", timeout=60)


def run(bench: Bench, folder: Path, failure: Failure) -> str:
    """Let a call fail, and return how the promise was broken; "": it was kept."""
    ended = bench.run(folder, failure)
    shutil.rmtree(folder)
    return broken(ended)


def shown_wrong(bench: Bench, folder: Path, plain: str, failure: Failure) -> str:
    """Return what `npu-smi` should not have said; "": all or nothing, and why not."""
    ended = bench.run(folder, failure)
    if ended.code == 0 and ended.output == plain:
        return ""
    told = ended.code == 1 and ended.errors.startswith("npu-smi: ")
    return "" if told else f"it ended with {ended.code}: {ended.errors}{ended.output}"


SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1",
}
