import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capture_canary.stack.npu_smi import NpuSmi, parse
from capture_canary.stack.npus import NpusUnknownError

DATA = Path(__file__).parent.parent / "data" / "npu-smi"
EXPECTED: dict[str, dict[str, Any]] = json.loads((DATA / "expected.json").read_text())
BUSY = (DATA / "a3-one-npu-busy.txt").read_text()
IDLE = (DATA / "a2-idle.txt").read_text()


@pytest.mark.parametrize("name", EXPECTED)
def test_reads_every_known_layout(name: str) -> None:
    want, npus = EXPECTED[name], parse((DATA / name).read_text())
    assert npus.version == want["version"]
    assert len(npus.chips) == want["chips"]
    assert len({c.npu for c in npus.chips}) == want["npus"]
    assert {c.hbm_total_mb for c in npus.chips} == {want["hbm_total_mb"]}
    assert [c.phy_id for c in npus.chips if c.health != "OK"] == want["unhealthy"]
    shown = [
        {key: getattr(p, key) for key in ("npu", "chip", "phy_id", "pid", "name", "memory_mb")}
        for p in npus.processes
    ]
    assert shown == want["processes"]
    assert npus.unknown_lines == want.get("unknown_lines", 0)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_chip_counts_its_processes(name: str) -> None:
    npus = parse((DATA / name).read_text())
    for chip in npus.chips:
        assert chip.phy_id is not None
        assert chip.processes == len(npus.on(chip.phy_id))


def test_reads_the_pid_in_the_container() -> None:
    npus = parse((DATA / "a2-26-busy.txt").read_text())
    assert [p.pid_in_container for p in npus.processes] == [None, 41, None]


@pytest.mark.parametrize(
    "row",
    [
        "| 2       0                 | 41200",  # a name with a line break in it
        "| 2       0                 | NA            | NA          | NA                      |",
        "| two     0                 | 412007        | VLLMWorker  | 54980                   |",
        "| 2       0                 | 412007        | VLLMWorker  | lots                    |",
        "| 9       0                 | 412007        | VLLMWorker  | 54980                   |",
        "| No running processes found in NPU x                                             |",
        "| 2|      1                 | 412008        | VLLMWorker  | 55021                   |",
        "| 2                         | 412008        | VLLMWorker  | 55021                   |",
        "+====+======      0         | 412007        | VLLMWorker  | 54980                   |",
        "2       0                   | 412007        | VLLMWorker  | 54980                   |",
    ],
)
def test_a_process_row_that_makes_no_sense_frees_no_chip(row: str) -> None:
    npus = parse(IDLE + row + "\n")
    assert {c.processes for c in npus.chips} == {None}


def test_a_missing_process_table_is_not_an_idle_one() -> None:
    npus = parse(IDLE[: IDLE.index("| NPU     Chip")])
    assert len(npus.chips) == 4
    assert {c.processes for c in npus.chips} == {None}


def test_a_table_that_contradicts_itself_frees_no_chip() -> None:
    npus = parse(BUSY + "| No running processes found in NPU 2 |\n")
    assert [c.processes for c in npus.chips] == [None, None, None, None, 1, 1]


def test_two_rows_run_together_free_no_chip() -> None:
    begin, end = BUSY.index("54980"), BUSY.index("| 412008")
    npus = parse(BUSY[:begin] + BUSY[end:])
    assert [(c.phy_id, c.processes) for c in npus.chips if c.npu == 2] == [(4, 1), (5, None)]


def test_a_process_cannot_pass_for_the_title() -> None:
    text = BUSY[BUSY.index("| NPU   Name") :]
    npus = parse(text.replace("VLLMWorker_TP", "npu-smi 9 Version: 9"))
    assert npus.version is None
    assert [c.processes for c in npus.chips if c.npu == 2] == [1, 1]


def test_chips_that_share_a_number_have_none() -> None:
    text = BUSY.replace("| 1     1                   |", "| 1     0                   |")
    assert [c.phy_id for c in parse(text).chips if c.npu == 0] == [0, None]


ROWS = st.lists(
    st.sampled_from(BUSY.split("\n") + IDLE.split("\n"))
    | st.text(alphabet=st.sampled_from("| 0123456789/:OKNAPUabc\r\x00é+-=%"), max_size=120),
    max_size=60,
)


@given(ROWS)
def test_hostile_tables_never_raise_and_never_free_a_busy_chip(rows: list[str]) -> None:
    npus = parse("\n".join(rows))
    for chip in npus.chips:
        shown = [p for p in npus.processes if (p.npu, p.chip) == (chip.npu, chip.chip)]
        assert not shown or chip.processes == len(shown)
    numbers = [c.phy_id for c in npus.chips if c.phy_id is not None]
    assert len(numbers) == len(set(numbers))


@given(st.text(max_size=40))
def test_whatever_a_process_is_called_its_chip_is_not_free(name: str) -> None:
    text = BUSY.replace("VLLMWorker_TP", name)
    for chip in parse(text).chips:
        if chip.npu == 2:
            assert chip.processes != 0


def command(folder: Path, body: str) -> str:
    path = folder / "npu-smi"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return os.fspath(path)


def test_runs_the_command(tmp_path: Path) -> None:
    body = f'[ "$1" = info ] && cat {DATA / "a2-idle.txt"}'
    assert len(NpuSmi(command(tmp_path, body)).read().chips) == 4


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("echo dcmi module initialize failed. ret is -8005; exit 1", "-8005"),
        ("echo 'because the device is used. ret is -8020'; exit 1", "another container holds"),
        ("exit 0", "no chips"),
        (f"cat {DATA / 'a2-idle.txt'}; exit 3", "exit code 3"),
    ],
)
def test_no_answer_is_an_error_that_says_what_was_said(
    tmp_path: Path, body: str, says: str
) -> None:
    with pytest.raises(NpusUnknownError, match=says):
        NpuSmi(command(tmp_path, body)).read()


def test_a_missing_command_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(NpusUnknownError, match="no-such-npu-smi"):
        NpuSmi(os.fspath(tmp_path / "no-such-npu-smi")).read()
