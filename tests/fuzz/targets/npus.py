"""What tells of NPUs: npu-smi's tables and npu-exporter's page. What is not understood is unknown, never free."""

import msgspec

from capture_canary.stack import npu_exporter, npu_smi
from capture_canary.stack.npus import Npus
from capture_canary.stack.soc import soc_of
from tests.fuzz.target import Target
from tests.stack.nodes import DATA
from tests.stack.test_npu_exporter import NOW, chip, sample

TABLES = [path.read_bytes() for path in sorted((DATA / "npu-smi").glob("*.txt"))]
HELD = sample(
    "npu_chip_info_process_info",
    1,
    54980.0,
    process_id="412007",
    container_name="default_pod-a_server",
)


def _sound(npus: Npus) -> None:
    for one in npus.chips:
        assert one.processes is None or one.processes >= len(
            [p for p in npus.processes if p.phy_id == one.phy_id and one.phy_id is not None]
        )
        assert all(
            text.isprintable()
            for text in (one.name, one.health, one.bus_id or "", one.vdie_id or "")
        )
    known = [one.phy_id for one in npus.chips if one.phy_id is not None]
    assert len(known) == len(set(known))
    assert all(one.name.isprintable() for one in npus.processes)
    soc_of(npus)
    msgspec.json.encode(npus)


def table(data: bytes) -> None:
    text = data.decode(errors="replace")
    npus = npu_smi.parse(text)
    _sound(npus)
    free = [one for one in npus.chips if one.processes == 0]
    # Zero is a statement: somebody made it, of this card.
    assert not free or "No running processes found in NPU" in text or npus.processes
    # A row of processes that cannot be read takes the zeros of all other chips away.
    if free and "| Process id" in text:
        more = npu_smi.parse(text.rstrip() + "\n| 7 something nobody can read |\n")
        assert all(one.processes != 0 for one in more.chips)


def exporter(data: bytes) -> None:
    text = data.decode(errors="replace")
    npus = npu_exporter.parse(text, now=NOW)
    _sound(npus)
    assert all(
        one.processes != 0 or "npu_chip_info_process_info_num{" in text for one in npus.chips
    )
    assert all(one.health != "OK" or "npu_chip_info_health_status{" in text for one in npus.chips)


TARGETS = (
    Target(
        "npu-smi", "tables of npu-smi", table, lambda: TABLES, longest=8192,
        tokens=(b"| ", b" |\n", b"+===+\n", b"No running processes found in NPU 0", b"Process id", b"Health", b"Bus-Id", b"| NPU     Chip  ", b" / "),
    ),
    Target(
        "npu-exporter", "npu-exporter's page", exporter, longest=4096,
        seeds=lambda: [(chip(0) + chip(1, processes=1) + HELD).encode(), (chip(0, health=0, processes=-1) + chip(3, age=900)).encode()],
        raises=(ValueError,),
        tokens=(b"npu_chip_info_process_info_num{", b"npu_chip_info_health_status{", b'id="1"', b"NaN", b"+Inf", b"-1", b"1e400", b"} ", b"# {"),
    ),
)  # fmt: skip
