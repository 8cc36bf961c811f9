"""What happens to the node of the soak, and what must come of it; all of it is known before the daemon is asked."""

import os
import random
import re
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from typing import NamedTuple

from bench.soak.hand import Order
from bench.soak.node import PATIENCE, Node

from capture_canary.lock import acquire
from capture_canary.trace.identity import own_identity
from capture_canary.trace.layout import MAGIC

YEAR = 365 * 86_400.0


class Stack(NamedTuple):
    """What is installed and set, and the verdict that is right: by docs/emulation.md's table, not by the daemon."""

    name: str
    emulate: str
    settings: str
    """Of the section `probe`."""
    verdict: str


_NODE = "soc=a3,npus=4"
_AIV, _ONE_ARM = "expansion_mode: AIV", "attribute: false"
STACKS = (
    Stack("8.5.0", f"cann=8.5.0,{_NODE}", "", "degraded"),
    Stack("9.0.0", f"cann=9.0.0,{_NODE}", _ONE_ARM, "degraded"),
    Stack("9.1.0-beta.1", f"cann=9.1.0-beta.1,{_NODE}", _ONE_ARM, "degraded"),
    Stack("9.1.0", f"cann=9.1.0,{_NODE}", "", "healthy"),
    Stack(
        "9.1.0, hcomm half mended", f"cann=9.1.0,hcomm=9.1.0-pr2405,{_NODE}", _ONE_ARM, "degraded"
    ),
    Stack("8.5.0, hcomm 9.1.0", f"cann=8.5.0,hcomm=9.1.0,{_NODE}", "", "healthy"),
    Stack("8.5.0 with AIV", f"cann=8.5.0,{_NODE}", _AIV, "mitigated"),
    Stack("9.1.0 with AIV", f"cann=9.1.0,{_NODE}", _AIV, "healthy"),
)

Around = Callable[[Node, random.Random], AbstractContextManager[None]]


class Fault(NamedTuple):
    """A fault, with what must come of it: a reason not to know, not to probe, or else the right verdict."""

    name: str
    unknown: str | None = None
    """What the reason of the unknown verdict must match."""
    skip: str | None = None
    emulated: str = ""
    """As CAPTURE_CANARY_EMULATE_FAULT takes it."""
    around: Around = lambda _node, _choice: nullcontext()
    during: Callable[[Node, random.Random], None] | None = None
    """Done while the probe runs."""
    device_error: bool = False
    """Two in a row latch probing off."""
    weight: float = 1.0

    @property
    def hangs(self) -> bool:
        """The probe takes the whole of its deadline."""
        return self.emulated.startswith("hang:") and self.during is None


@contextmanager
def full_disk(node: Node, _choice: random.Random) -> Iterator[None]:
    """Have no room for the history."""
    junk = node.state / "junk"
    with suppress(OSError), junk.open("wb", buffering=0) as file:
        while file.write(bytes(1 << 12)):
            pass
    try:
        yield
    finally:
        junk.unlink()


@contextmanager
def clock_set(node: Node, choice: random.Random) -> Iterator[None]:
    """Have somebody set the wall clock, by a minute or by a year."""
    node.order(Order(setting=_far(choice)))
    node.answer()
    yield


@contextmanager
def clock_set_later(node: Node, choice: random.Random) -> Iterator[None]:
    """Have somebody do so while the probe runs."""
    node.order(Order(later=_far(choice)))
    node.answer()
    yield


def _far(choice: random.Random) -> float:
    most = choice.choice((60.0, 3600.0, 86_400.0, YEAR))
    return choice.uniform(-most, most)


@contextmanager
def garbage(node: Node, choice: random.Random) -> Iterator[None]:
    """Have garbage in place of the settings."""
    good = node.config.read_bytes()
    broken = (
        choice.randbytes(4096),
        b"probe: {interval: never}\n",
        b"a: &a [*a]\n",
        b"nonsense: 1\n",
    )
    node.config.write_bytes(choice.choice(broken))
    try:
        _beats(node, 3)
        said = node.metrics()["config_last_reload_successful"]
        assert said == 0, f"garbage for settings, and config_last_reload_successful is {said}"
        yield
    finally:
        node.config.write_bytes(good)
    _beats(node, 3)
    # It went back to what was in force, which is no change: a signal has it read again.
    node.process.send_signal(signal.SIGHUP)
    _beats(node, 2)
    said = node.metrics()["config_last_reload_successful"]
    assert said == 1, f"good settings again, and config_last_reload_successful is {said}"


@contextmanager
def bad_traces(node: Node, choice: random.Random) -> Iterator[None]:
    """Have traces in the folder that are none."""
    own, made = own_identity(), []
    for number in range(choice.randrange(1, 20)):
        path = node.traces / own.file_name.replace(str(own.start_time), str(number + 1))
        path.write_bytes(
            choice.choice((b"", MAGIC, b"junk")) + choice.randbytes(choice.randrange(5000))
        )
        made.append(path)
    try:
        yield
    finally:
        for path in made:
            path.unlink()
    _beats(node, 2)


@contextmanager
def crowd(node: Node, choice: random.Random) -> Iterator[None]:
    """Have clients that ask and do not read, or ask nothing, more of them than are served at once."""
    with ExitStack() as clients:
        for _ in range(choice.randrange(1, 100)):
            client = clients.enter_context(socket.create_connection(("127.0.0.1", node.port), 30))
            with suppress(OSError):  # closed for a later one
                client.sendall(
                    choice.choice((b"", b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 5))
                )
        yield


@contextmanager
def locked(node: Node, _choice: random.Random) -> Iterator[None]:
    """Have another daemon probe on this node."""
    lock = acquire(node.folder / "lock")
    try:
        yield
    finally:
        lock.release()


def kill(node: Node, choice: random.Random) -> None:
    """Kill a process of the probe, once all are there."""
    end = time.monotonic() + PATIENCE
    while len(found := node.workers()) < 3 and time.monotonic() < end:
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.kill(choice.choice(found), signal.SIGKILL)


def _beats(node: Node, count: int) -> None:
    for _ in range(count):
        node.order(Order(passing=0.5))
        node.answer()


_HANGING = 0.2
FAULTS = (
    *(
        Fault(f"dies: {step}", f"rank {step[-1]} failed", emulated=f"die:{step}")
        for step in (
            "HcclGetRootInfo:1@0",
            "HcclCommInitRootInfoConfig:1@1",
            "aclmdlRICaptureBegin:2@0",
            "HcclAllReduce:3@1",
            "aclmdlRICaptureEnd:2@1",
        )
    ),
    *(
        Fault(f"hangs: {step}", "in time", emulated=f"hang:{step}", weight=_HANGING)
        for step in (
            "aclrtSetDevice:1@1",
            "HcclCommInitRootInfoConfig:1@0",
            "aclmdlRICaptureEnd:2@1",
            "HcclCommDestroy:1@0",
        )
    ),
    *(
        Fault(f"returns an error: {step}", code, emulated=f"fail:{step}")
        for step, code in (
            ("aclrtSetDevice:1:107001@1", "107001"),
            ("aclrtMalloc:2:207001@0", "207001"),
            ("aclmdlRICaptureBegin:1:107030", "107030"),
            ("aclmdlRICaptureBegin:2:207008", "207008"),
            ("HcclGetRootInfo:1:7@0", "HcclGetRootInfo"),
            ("HcclAllReduce:3:4@1", "returned 4"),
        )
    ),
    Fault("the NPU fails", "507899", emulated="fail:aclrtSetDevice:1:507899", device_error=True, weight=3),
    Fault(
        "kill -9 of the probe's leader or a rank",
        "signal 9|status -9",
        emulated="hang:aclmdlRICaptureEnd:2@1",
        during=kill,
    ),
    Fault("a slow CANN", emulated="slow:aclmdlRICaptureEnd:10"),
    Fault("the disk is full", around=full_disk),
    Fault("the wall clock is set", around=clock_set, weight=3),
    Fault("the wall clock is set while a probe runs", around=clock_set_later),
    Fault("garbage for settings", around=garbage),
    Fault("torn and forged traces", around=bad_traces),
    Fault("a crowd of clients that do not read", around=crowd),
    Fault("another probe on the node", skip="locked", around=locked),
)  # fmt: skip


def as_told(fault: Fault, reason: str) -> bool:
    """Whether the reason of an unknown verdict is the fault that was injected."""
    return fault.unknown is not None and re.search(fault.unknown, reason) is not None
