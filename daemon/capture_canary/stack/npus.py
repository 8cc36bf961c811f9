"""What NPUs look like from outside, without opening one: chips and the processes on them."""

import msgspec


class NpusUnknownError(Exception):
    """The NPUs could not be looked at; the message says why, for the gate to pass on."""


class Chip(msgspec.Struct, frozen=True, kw_only=True):
    """One chip: an NPU of an A2, half an NPU of an A3."""

    npu: int | None
    """The card's number; None where the source doesn't say."""
    chip: int | None
    phy_id: int | None
    """N of /dev/davinciN; None where it could not be told, and then the chip is never probed."""
    name: str
    health: str
    """As npu-smi spells it; "OK" is the only good one."""
    bus_id: str | None
    vdie_id: str | None = None
    """The die's own number, which only npu-exporter tells."""
    hbm_used_mb: int | None
    hbm_total_mb: int | None
    aicore: int | None
    """Use of the AI cores, %."""
    processes: int | None
    """Processes on it; None where the source didn't say. Zero is a statement, None is not."""


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """A process that holds a chip."""

    npu: int | None
    chip: int | None
    phy_id: int | None
    pid: int
    """As the host counts."""
    pid_in_container: int | None
    name: str
    memory_mb: int | None


class Npus(msgspec.Struct, frozen=True, kw_only=True):
    """All that one look showed."""

    source: str
    """The command or address that said so."""
    version: str | None
    """npu-smi's, which is the driver's."""
    chips: tuple[Chip, ...]
    processes: tuple[Process, ...]
    unknown_lines: int = 0
    """Lines or samples that made no sense to the reader."""

    def on(self, phy_id: int) -> tuple[Process, ...]:
        """The processes on one chip."""
        return tuple(p for p in self.processes if p.phy_id == phy_id)


def printable(text: str, limit: int = 64) -> str:
    """A name from outside, fit for a log line or a page."""
    return "".join(c if c.isprintable() else "?" for c in text.strip()[:limit])
