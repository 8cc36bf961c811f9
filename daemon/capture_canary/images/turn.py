"""This node's turn for a command that an operator gives: its lock held, its gate asked, its chips back afterwards."""

import math
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import msgspec

from capture_canary.config.model import Config
from capture_canary.gate.collect import look
from capture_canary.gate.decide import decide
from capture_canary.gate.latch import Latch, LatchFile
from capture_canary.gate.model import Decision, Snapshot
from capture_canary.gate.release import released, wait_released
from capture_canary.images.share import Share, share_of
from capture_canary.lock import acquire
from capture_canary.service.settings import gate_rules, runtime_numbers
from capture_canary.stack import npu_smi
from capture_canary.stack.exposure import family
from capture_canary.stack.npu_smi import NpuSmi
from capture_canary.stack.npus import Npus
from capture_canary.stack.soc import soc_of


class RefusedError(Exception):
    """The gate says no; the message says why, `decision` everything it rests on."""

    def __init__(self, decision: Decision) -> None:
        """Take the gate's answer."""
        super().__init__(decision.sentence)
        self.decision = decision


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """Chips that the gate lets us have now."""

    devices: tuple[int, ...]
    """N of each /dev/davinciN."""
    numbers: tuple[int, ...]
    """The same as the runtime numbers them in a container that is given only these."""
    share: Share
    """What such a container is given of the node."""


class Node:
    """This node, for as long as its lock is held."""

    def __init__(self, config: Config, base: Mapping[str, str], npus: int) -> None:
        """Args: the settings, the environment that names the CANN (of an emulated node), NPUs that a turn takes."""
        self._emulated = config.emulate is not None
        self._npu_smi = NpuSmi(npu_smi.command(base), env=base)
        self._latch = Latch(LatchFile(config.state_dir / "probe-latch.json"))
        self._settle = float(config.gate.settle)
        # The daily budget is that of probes which nobody asked for.
        self._rules = msgspec.structs.replace(gate_rules(config), devices=npus, budget=math.inf)
        self._paused = "paused in the configuration" if config.paused else None
        self.lock = str(config.lock_file)

    @contextmanager
    def turn(self, *, cann: str | None = None) -> Iterator[Turn]:
        """Have chips for a command in an image with this CANN; afterwards wait until they are as before, or latch.

        Raises:
            RefusedError: the gate says no.
        """
        facts = self._facts(cann)
        decision = decide(self._rules, facts)
        before = facts.npus
        if before is None or not decision.allowed:
            raise RefusedError(decision)
        numbers = runtime_numbers(
            decision.devices, frozenset(decision.devices) if facts.nodes else frozenset()
        )
        try:
            yield Turn(devices=decision.devices, numbers=numbers, share=share_of(decision.devices))
        finally:
            self._check_released(facts, before, decision.devices)

    def latch(self, why: str) -> None:
        """Have no further probe begin on this node until a person has looked."""
        self._latch.trip(why, time.time())

    def _facts(self, cann: str | None) -> Snapshot:
        known = Snapshot(
            emulated=self._emulated, paused=self._paused, latched=self._latch.why(), cann=cann
        )
        facts = look(known, self._rules, self._npu_smi.read)
        soc = soc_of(facts.npus).value if facts.npus else None
        facts = msgspec.structs.replace(facts, soc=family(soc) if soc else None)
        if self._emulated:  # how busy this host is says nothing of a node that is not there
            facts = msgspec.structs.replace(facts, load=None)
        return facts

    def _check_released(self, facts: Snapshot, before: Npus, devices: tuple[int, ...]) -> None:
        """The container is gone, and its processes with it: who holds a chip now is somebody else."""
        same_pids = facts.emulated or facts.place == "host"
        back = wait_released(
            lambda after: released(before, after, devices, (), same_pids=same_pids),
            self._npu_smi.read,
            threading.Event(),
            settle=self._settle,
        )
        if not back.ok:
            self.latch(f"after a command in an image: {back.sentence}")


@contextmanager
def this_node(config: Config, base: Mapping[str, str], *, npus: int = 2) -> Iterator[Node]:
    """Hold this node's lock, so that nobody else probes here meanwhile.

    Raises:
        LockBusyError: somebody probes.
        LockUnusableError: there is no lock to be had.
    """
    lock = acquire(config.lock_file)
    try:
        yield Node(config, base, npus)
    finally:
        lock.release()
