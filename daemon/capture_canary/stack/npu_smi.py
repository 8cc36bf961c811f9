"""`npu-smi info`: runs it, and reads its table in all the layouts it is known to print.

    A2         NPU Name | Health | …         then  Chip | Bus-Id | AICore Memory HBM
    A3, 310P   the same, with Phy-ID (Device) after Chip, and two chips an NPU
    950        NPU ID | Name | Health | …    then  (empty) | (empty) | Bus-Id | …

The process table may have a last column "Process id in container". Names are printed as they are,
so they may be empty or hold spaces, `|` and line breaks: a row that cannot be read makes the
occupancy of all chips unknown, never free.
"""

import re
import shutil
from collections.abc import Mapping

from msgspec.structs import replace

from capture_canary.stack.command import Command, CommandError
from capture_canary.stack.npus import Chip, Npus, NpusUnknownError, Process, printable

_MAX_CHIPS = 256
_MAX_PROCESSES = 4096
_NUMBER = r"(\d{1,9})"
_VERSION = re.compile(r"npu-smi\s+\S+\s+Version:\s*(\S+)")
_RULE = re.compile(r"[+=-]+")
_CARD = re.compile(rf"{_NUMBER}\s+(\S.*)")
_CHIP = re.compile(rf"{_NUMBER}(?:\s+{_NUMBER})?")
_USED = re.compile(rf"{_NUMBER}\s*/\s*{_NUMBER}")
_IDLE = re.compile(rf"No running processes found in NPU {_NUMBER}")
_HELD = re.compile(r"because the device is used|-8020\b")


class NpuSmi:
    """The command, ready to be asked."""

    def __init__(
        self,
        path: str = "npu-smi",
        *,
        deadline: float = 10.0,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Args: the command, the seconds it may take, its environment where not ours."""
        self._command = Command([path, "info"], deadline=deadline, env=env)

    def read(self) -> Npus:
        """What it shows now. Blocks up to its deadline and a second."""
        try:
            code, output = self._command.run()
        except CommandError as error:
            raise NpusUnknownError(str(error)) from error
        text = output.decode("utf-8", "replace")
        npus = parse(text)
        if code == 0 and npus.chips:
            return npus
        said = printable(text.strip().rpartition("\n")[2], 200)
        if _HELD.search(text):
            raise NpusUnknownError(f"npu-smi info: another container holds the NPUs ({said})")
        raise NpusUnknownError(f"npu-smi info: exit code {code}, no chips; it said: {said!r}")


def command(environ: Mapping[str, str]) -> str:
    """Return the command that an environment's PATH finds: the emulated CANN brings one."""
    return shutil.which("npu-smi", path=environ.get("PATH")) or "/usr/local/bin/npu-smi"


def parse(text: str) -> Npus:
    """Reads the table; lines that mean nothing to it are counted."""
    table = _Table()
    for line in text.split("\n"):
        table.line(line.strip())
    return table.npus()


class _Table:
    """The reader's state: which half of the output it is in, and the card whose chip is next."""

    def __init__(self) -> None:
        self._version: str | None = None
        self._chips: dict[tuple[int, int], Chip] = {}
        self._processes: list[Process] = []
        self._idle: set[int] = set()
        self._card: tuple[int, str, str] | None = None
        self._columns = 0
        """Cells of a row of the present half; 0 before its head."""
        self._in_processes = False
        self._chip_named = True
        """A row of the process table begins with card and chip, not with the card alone."""
        self._processes_readable = True
        self._unknown = 0

    def line(self, line: str) -> None:
        if not line or _RULE.fullmatch(line):
            return
        version = _VERSION.search(line) if self._columns == 0 else None
        if version:
            self._version = printable(version[1])
        elif not self._head(line) and not self._row(line):
            self._unknown += 1

    def _head(self, line: str) -> bool:
        cells = _cells(line)
        if "Process id" in cells and cells[0].startswith("NPU"):
            self._in_processes, self._columns = True, len(cells)
            self._chip_named = "Chip" in cells[0]
            return True
        if not self._in_processes and ("Health" in cells or "Bus-Id" in cells):
            self._columns = len(cells)
            return True
        return False

    def _row(self, line: str) -> bool:
        if not self._in_processes:
            return line.startswith("|") and self._chip_row(_cells(line))
        if "|" not in line:
            return False  # a warning between or after the rows
        pieces = _split(line) if line.startswith("|") and line.endswith("|") else []
        idle = _IDLE.fullmatch(pieces[0].strip()) if len(pieces) == 1 else None
        if idle:
            self._idle.add(int(idle[1]))
            return True
        process = self._process(pieces)
        if process is None or len(self._processes) >= _MAX_PROCESSES:
            self._processes_readable = False
            return False
        self._processes.append(process)
        return True

    def _chip_row(self, cells: list[str]) -> bool:
        if len(cells) != self._columns:
            return False
        if len(cells) == 4:  # noqa: PLR2004 - 950: the number has a column of its own
            cells = [" ".join(cells[:2]).strip(), *cells[2:]]
        if len(cells) != 3:  # noqa: PLR2004 - number, health or bus, figures
            return False
        card = _CARD.fullmatch(cells[0])
        pending, self._card = self._card, None
        if pending is not None and (card is None or _CHIP.fullmatch(cells[0])):
            return self._chip(pending, cells)
        if card is not None:
            self._card = (int(card[1]), printable(card[2]), printable(cells[1]))
        return card is not None and pending is None

    def _chip(self, card: tuple[int, str, str], cells: list[str]) -> bool:
        npu, name, health = card
        ids = _CHIP.fullmatch(cells[0] or "0")
        if ids is None:
            return False
        chip = int(ids[1])
        if (npu, chip) in self._chips or len(self._chips) >= _MAX_CHIPS:
            return False
        phy_id = int(ids[2]) if ids[2] else npu if chip == 0 else None
        if phy_id in {c.phy_id for c in self._chips.values()}:
            phy_id = None  # two chips of one number: neither the table nor we can tell them apart
        pairs = _USED.findall(cells[2])
        first = re.match(_NUMBER + r"\s", cells[2])
        self._chips[npu, chip] = Chip(
            npu=npu,
            chip=chip,
            phy_id=phy_id,
            name=name,
            health=health,
            bus_id=printable(cells[1]) if cells[1] not in {"", "NA"} else None,
            hbm_used_mb=int(pairs[-1][0]) if pairs else None,
            hbm_total_mb=int(pairs[-1][1]) if pairs else None,
            aicore=int(first[1]) if first and pairs else None,
            processes=None,
        )
        return True

    def _process(self, pieces: list[str]) -> Process | None:
        tail = self._columns - 3  # memory, and the pid in the container where there is that column
        if tail < 1 or len(pieces) < self._columns:
            return None
        ids = _CHIP.fullmatch(pieces[0].strip())
        if ids is None or (ids[2] is not None) != self._chip_named:
            return None
        name = "|".join(pieces[2:-tail])
        pid, *rest = (piece.strip() for piece in [pieces[1], *pieces[-tail:]])
        inner = rest[1] if len(rest) > 1 else "NA"
        if not _is_number(pid) or not _is_number(rest[0], "NA"):
            return None
        if not _is_number(inner, "NA", ""):
            return None
        npu, chip = int(ids[1]), int(ids[2] or 0)
        known = self._chips.get((npu, chip))
        return Process(
            npu=npu,
            chip=chip,
            phy_id=known.phy_id if known else None,
            pid=int(pid),
            pid_in_container=int(inner) if _is_number(inner) else None,
            name=printable(name),
            memory_mb=int(rest[0]) if _is_number(rest[0]) else None,
        )

    def npus(self) -> Npus:
        busy: dict[tuple[int | None, int | None], int] = {}
        for p in self._processes:
            busy[p.npu, p.chip] = busy.get((p.npu, p.chip), 0) + 1
        strangers = busy.keys() - self._chips.keys()
        told_idle = self._idle & {
            p.npu for p in self._processes
        }  # and yet busy: not to be believed
        readable = self._processes_readable and not strangers and not told_idle
        # A name with a bar in it may be a second row whose begin got lost: another chip's of the card.
        doubtful = {p.npu for p in self._processes if "|" in p.name}
        listed = self._idle.union(p.npu for p in self._processes) - doubtful
        chips = [
            replace(c, processes=busy.get((c.npu, c.chip), 0))
            if (c.npu, c.chip) in busy or (readable and c.npu in listed)
            else c
            for c in self._chips.values()
        ]
        return Npus(
            source="npu-smi info",
            version=self._version,
            chips=tuple(chips),
            processes=tuple(self._processes),
            unknown_lines=self._unknown,
        )


def _split(line: str) -> list[str]:
    return line.removeprefix("|").removesuffix("|").split("|")


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in _split(line)]


def _is_number(text: str, *others: str) -> bool:
    return re.fullmatch(_NUMBER, text) is not None or text in others
