"""A foreign process that takes and gives back NPUs of the emulated node when told, and says when that was."""

import subprocess
import sys
from contextlib import AbstractContextManager
from typing import NamedTuple

CODE = """
import ctypes, os, sys, time
acl = ctypes.CDLL(os.environ["ASCEND_HOME_PATH"] + "/lib64/libascendcl.so")
assert acl.aclInit(None) == 0
print("ready", flush=True)
for line in sys.stdin:
    order, npu = line.split()
    call = {"take": acl.aclrtSetDevice, "give": acl.aclrtResetDevice}[order]
    begun = time.monotonic()
    assert call(int(npu)) == 0
    print(begun, time.monotonic(), flush=True)
"""


class Held(NamedTuple):
    """A time, by the monotonic clock, for which an NPU was held for certain; and what it could have been at most."""

    npu: int
    asked: float
    taken: float
    giving: float
    given: float


class Holder(AbstractContextManager["Holder"]):
    """The process."""

    def __init__(self, environ: dict[str, str]):
        self._process = subprocess.Popen(
            [sys.executable, "-c", CODE],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._line() == "ready"
        self._held: dict[int, tuple[float, float]] = {}
        self.past: list[Held] = []

    @property
    def pid(self) -> int:
        return self._process.pid

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def _order(self, order: str, npu: int) -> tuple[float, float]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{order} {npu}\n")
        self._process.stdin.flush()
        begun, ended = self._line().split()
        return float(begun), float(ended)

    def take(self, npu: int) -> None:
        self._held[npu] = self._order("take", npu)

    def give(self, npu: int) -> None:
        self.past.append(Held(npu, *self._held.pop(npu), *self._order("give", npu)))

    def holds(self) -> list[int]:
        return [*self._held]

    def give_all(self) -> None:
        for npu in self.holds():
            self.give(npu)

    def __exit__(self, *_error: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)
        if self._process.stdout:
            self._process.stdout.close()
