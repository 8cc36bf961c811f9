"""The same facts from npu-exporter's metrics page, for a node where it runs anyway.

It runs privileged, so it counts the processes that a container's own npu-smi doesn't show. Its
samples carry the time they were taken at; older than 30 s, or without one, they are not believed.
"""

import re
import time
import urllib.parse
from collections.abc import Iterable

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from capture_canary import fetch
from capture_canary.stack.npus import Chip, Npus, NpusUnknownError, Process, printable

MAX_AGE = 30.0
_MAX_AHEAD = 5.0
"""Seconds that its clock may be ahead of ours: it runs on this node."""
MAX_PAGE = 8 << 20
"""Bytes of the page."""
_MAX_SAMPLES = 20_000
_NUM = "npu_chip_info_process_info_num"
_INFO = "npu_chip_info_process_info"
_HEALTH = "npu_chip_info_health_status"
_USED = "npu_chip_info_hbm_used_memory"
_TOTAL = "npu_chip_info_hbm_total_memory"
_AICORE = "npu_chip_info_utilization"
_WANTED = re.compile(rf"(?:{_NUM}|{_INFO}|{_HEALTH}|{_USED}|{_TOTAL}|{_AICORE})\{{")
_ID = re.compile(r"\d{1,4}")


class NpuExporter:
    """One metrics page, ready to be read."""

    def __init__(self, url: str, *, max_age: float = MAX_AGE, deadline: float = 5.0) -> None:
        """Args: the page's http(s) address; seconds its samples may be old, and reading it may take."""
        self._max_age = max_age
        self._url = url
        self._deadline = deadline

    def read(self) -> Npus:
        """What it shows now."""
        try:
            text = _get(self._url, self._deadline)
        except (OSError, ValueError) as error:
            raise NpusUnknownError(f"npu-exporter at {self._url}: {error}") from error
        try:
            return parse(text, now=time.time(), max_age=self._max_age, source=self._url)
        except ValueError as error:
            raise NpusUnknownError(f"npu-exporter at {self._url}: {error}") from error


def _get(url: str, deadline: float) -> str:
    parts = urllib.parse.urlsplit(url)
    address = parts._replace(path=parts.path or "/metrics").geturl()
    page = fetch.get(address, deadline=deadline, limit=MAX_PAGE, accept="text/plain")
    return page.decode("utf-8", "replace")


def parse(text: str, *, now: float, max_age: float = MAX_AGE, source: str = "npu-exporter") -> Npus:
    """Reads the page; a ValueError says why it is not to be believed."""
    lines = [line for line in text.split("\n") if _WANTED.match(line)]
    if len(lines) > _MAX_SAMPLES:
        raise ValueError(f"over {_MAX_SAMPLES} samples of NPUs")
    chips: dict[int, _ChipSamples] = {}
    unknown = 0
    for sample in _samples(lines):
        phy_id = sample.labels.get("id", "")
        if not _ID.fullmatch(phy_id):
            unknown += 1
            continue
        _check_age(sample, now, max_age)
        chips.setdefault(int(phy_id), _ChipSamples()).add(sample)
    if not chips:
        raise ValueError("no npu_chip_info samples with an id")
    return Npus(
        source=source,
        version=None,
        chips=tuple(samples.chip(phy_id) for phy_id, samples in sorted(chips.items())),
        processes=tuple(p for phy_id, samples in chips.items() for p in samples.processes(phy_id)),
        unknown_lines=unknown,
    )


def _samples(lines: list[str]) -> Iterable[Sample]:
    try:
        for family in text_string_to_metric_families("\n".join(lines) + "\n"):
            yield from family.samples
    except (ValueError, IndexError, KeyError, TypeError, AttributeError):
        # The parser quotes what it got; whoever chooses the address is to learn nothing of another's page.
        raise ValueError("not the text format of Prometheus") from None


def _check_age(sample: Sample, now: float, max_age: float) -> None:
    if sample.timestamp is None:
        raise ValueError(f"{sample.name} carries no time")
    age = now - float(sample.timestamp)
    if not -_MAX_AHEAD <= age <= max_age:
        raise ValueError(f"{sample.name} is {age:.0f} s old, over {max_age:g} s")


class _ChipSamples:
    """The samples of one chip. A virtual NPU repeats them: the largest value counts."""

    def __init__(self) -> None:
        self._values: dict[str, float] = {}
        self._labels: dict[str, str] = {}
        self._held: list[tuple[dict[str, str], float]] = []
        self._failed = False

    def add(self, sample: Sample) -> None:
        self._labels = sample.labels
        if sample.name == _INFO:
            self._held.append((sample.labels, sample.value))
            return
        if sample.name == _NUM and not 0 <= sample.value < _MAX_SAMPLES:
            self._failed = True  # the exporter says -1 where it could not ask
        if sample.name == _HEALTH:  # the worst one: 1 is healthy, 0 is not, all else is unknown
            value = sample.value if sample.value in {0.0, 1.0} else -1.0
            self._values[_HEALTH] = min(value, self._values.get(_HEALTH, 1.0))
        else:
            self._values[sample.name] = max(sample.value, self._values.get(sample.name, -1.0))

    def _int(self, name: str) -> int | None:
        value = self._values.get(name, -1.0)
        return int(value) if 0 <= value < 1 << 40 else None

    def chip(self, phy_id: int) -> Chip:
        health = {1.0: "OK", 0.0: "not OK"}.get(self._values.get(_HEALTH, -1.0), "unknown")
        counted = None if self._failed else self._int(_NUM)
        shown = len(self.processes(phy_id))
        return Chip(
            npu=None,
            chip=None,
            phy_id=phy_id,
            name=printable(self._labels.get("model_name", "")),
            health=health,
            bus_id=printable(self._labels.get("pcie_bus_info", "")) or None,
            vdie_id=printable(self._labels.get("vdie_id", "")) or None,
            hbm_used_mb=self._int(_USED),
            hbm_total_mb=self._int(_TOTAL),
            aicore=self._int(_AICORE),
            processes=shown or None if counted is None else max(counted, shown),
        )

    def processes(self, phy_id: int) -> list[Process]:
        return [
            Process(
                npu=None,
                chip=None,
                phy_id=phy_id,
                pid=int(labels["process_id"]),
                pid_in_container=None,
                name=printable(labels.get("container_name", "")),
                memory_mb=int(value) if 0 <= value < 1 << 40 else None,
            )
            for labels, value in self._held
            if re.fullmatch(r"\d{1,9}", labels.get("process_id", ""))
        ]
