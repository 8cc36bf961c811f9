"""Run a test's body in a child process on an emulated CANN: device state and faults are a process's."""

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
H2H, H2D, D2H, D2D = 0, 1, 2, 3
MiB = 1 << 20


def emulated(
    tmp_path: Path, settings: str = "", fault: str = "", extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The environment of a process on an emulated CANN whose node and cache are this test's."""
    from capture_canary import emulate  # noqa: PLC0415  # children import this module too, and start faster without

    environ = {name: value for name, value in os.environ.items() if not name.startswith("CAPTURE_")}
    environ |= {
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "CAPTURE_CANARY_EMULATE_NODE": str(tmp_path / "node"),
        "CAPTURE_CANARY_EMULATE_FAULT": fault,
        "PYTHONPATH": str(ROOT),
    }
    return {**environ, **emulate.environment(emulate.parse(settings), environ), **(extra or {})}


def compile_c(source: str, to: Path, *options: str) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "the project needs a C compiler, and so do these tests"
    subprocess.run(
        [compiler, Path(__file__).parent / source, "-o", to, *options],
        check=True,
        capture_output=True,
        text=True,
    )
    return to


def start(code: str, environ: Mapping[str, str]) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    arguments = [sys.executable, "-c", code]
    return subprocess.Popen(
        arguments, env=environ, cwd=ROOT, text=True, stdin=pipe, stdout=pipe, stderr=pipe
    )


def isolated(
    settings: str = "", fault: str = "", **extra: str
) -> Callable[[Callable[[], None]], Callable[[Path], None]]:
    """Make a function the body of a test that runs in a child; an assertion that fails there fails here."""

    def decorate(body: Callable[[], None]) -> Callable[[Path], None]:
        def test(tmp_path: Path) -> None:
            code = f"from {body.__module__} import {body.__name__}; {body.__name__}.body()"
            child = start(code, emulated(tmp_path, settings, fault, extra))
            output, errors = child.communicate(timeout=60)
            assert child.returncode == 0, f"{output}\n{errors}"

        test.__name__, test.__doc__, test.__module__ = body.__name__, body.__doc__, body.__module__
        test.body = body  # type: ignore[attr-defined]  # what the child runs
        return test

    return decorate


class Acl:
    """libascendcl by ctypes: numbers are passed as 64 bits wide, which every argument's register is."""

    def __init__(self, device: int | None = 0) -> None:
        self.library = ctypes.CDLL(
            str(Path(os.environ["ASCEND_HOME_PATH"], "lib64/libascendcl.so"))
        )
        if device is not None:
            self.ok("aclrtSetDevice", device)

    def call(self, name: str, *arguments: Any) -> int:
        wide = [ctypes.c_int64(value) if isinstance(value, int) else value for value in arguments]
        return int(getattr(self.library, name)(*wide))

    def ok(self, name: str, *arguments: Any) -> None:
        self.fails(0, name, *arguments)

    def fails(self, code: int, name: str, *arguments: Any) -> None:
        found = self.call(name, *arguments)
        assert found == code, f"{name} returned {found}, not {code}"

    def made(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        """Call a function that makes something and puts it where its first argument points."""
        handle = ctypes.c_void_p()
        self.ok(name, ctypes.byref(handle), *arguments)
        return handle

    def malloc(self, size: int) -> ctypes.c_void_p:
        return self.made("aclrtMalloc", size, 0)

    def stream(self) -> ctypes.c_void_p:
        return self.made("aclrtCreateStream")

    def event(self) -> ctypes.c_void_p:
        return self.made("aclrtCreateEventExWithFlag", 0)

    def write(self, to: ctypes.c_void_p, data: bytes) -> int:
        return self.call("aclrtMemcpy", to, len(data), data, len(data), H2D)

    def read(self, pointer: ctypes.c_void_p, size: int) -> bytes:
        data = ctypes.create_string_buffer(size)
        self.ok("aclrtMemcpy", data, size, pointer, size, D2H)
        return data.raw

    def free_hbm(self) -> int:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.ok("aclrtGetMemInfo", 1, ctypes.byref(free), ctypes.byref(total))
        return free.value

    def begin(self, stream: ctypes.c_void_p, mode: int = GLOBAL) -> None:
        self.ok("aclmdlRICaptureBegin", stream, mode)

    def end(self, stream: ctypes.c_void_p) -> ctypes.c_void_p:
        graph = ctypes.c_void_p()
        self.ok("aclmdlRICaptureEnd", stream, ctypes.byref(graph))
        return graph

    def exchange(self, mode: int) -> int:
        value = ctypes.c_int32(mode)
        self.ok("aclmdlRICaptureThreadExchangeMode", ctypes.byref(value))
        return value.value

    def status(self, stream: ctypes.c_void_p) -> tuple[int, int | None]:
        status, graph = ctypes.c_int32(-1), ctypes.c_void_p()
        self.ok("aclmdlRICaptureGetInfo", stream, ctypes.byref(status), ctypes.byref(graph))
        return status.value, graph.value

    def copy(self, to: ctypes.c_void_p, source: ctypes.c_void_p, size: int, stream: Any) -> int:
        return self.call("aclrtMemcpyAsync", to, size, source, size, D2D, stream)

    def message(self) -> str:
        function = self.library.aclGetRecentErrMsg
        function.restype = ctypes.c_char_p
        return bytes(function()).decode()
