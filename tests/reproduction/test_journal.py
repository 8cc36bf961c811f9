"""The journal of a reproduction: what was written comes back, what is torn is cut, what is hostile is refused."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.reproduction import journaling

from capture_canary.probe.messages import Captured
from capture_canary.reproduction import said
from capture_canary.reproduction.journal import NAME, JournalError, open_journal
from capture_canary.reproduction.measure import restarts


def lines(folder: Path) -> list[bytes]:
    return (folder / NAME).read_bytes().splitlines(keepends=True)


def test_what_was_measured_comes_back(tmp_path: Path):
    one = journaling.written(tmp_path)
    one.close()

    again = open_journal(tmp_path, journaling.header(begun=2e9, seed=9))

    assert one.attempts == again.attempts
    assert ["as_configured"] == [*again.complete()]
    assert (1e9, 7) == (again.header.begun, again.header.settings.seed), "those of the first run"
    kept, interrupted = said.resumed(again)
    assert "kept, 6 captures" in kept
    assert "AIV: interrupted in round 2 of 3" in interrupted


def test_an_arm_begun_anew_leaves_what_was_measured_before_it(tmp_path: Path):
    journaling.written(tmp_path).close()
    journal = open_journal(tmp_path, journaling.header())
    journaling.write(journal, "aiv", grows=False)
    journal.end(None)

    (restart,) = restarts(journal)

    assert {"as_configured", "aiv"} == journal.complete().keys()
    assert ("aiv", "interrupted", False) == (
        restart.attempt.arm,
        restart.why,
        restart.attempt.complete,
    )
    assert restart.outcome is not None
    assert [1, 2] == [one.number for one in restart.outcome.rounds]
    assert "AIV, begun" in said.restarted(restart)


def test_an_arm_that_failed_is_not_complete(tmp_path: Path):
    journal = open_journal(tmp_path, journaling.header())
    journaling.write(journal, "as_configured", 1)
    journal.end("rank 1 failed in MakeCapture: its process died (signal 9)")

    assert {} == journal.complete()
    assert "its process died" in said.resumed(journal)[0]


def test_cut_anywhere_it_goes_on_with_what_is_whole(tmp_path: Path):
    journaling.written(tmp_path).close()
    whole = (tmp_path / NAME).read_bytes()
    ends = [number for number, byte in enumerate(whole, 1) if byte == ord("\n")]
    for cut in range(0, len(whole), 7):
        (tmp_path / NAME).write_bytes(whole[:cut] + b"\0" * (cut % 3 * 20000))
        journal = open_journal(tmp_path, journaling.header())
        journal.close()
        kept = sum(1 for end in ends if end <= cut)
        left = lines(tmp_path)
        assert max(1, kept) == len(left), "the header is written anew where it was torn"
        assert whole.splitlines(keepends=True)[1:kept] == left[1:]


@pytest.mark.parametrize(
    ("changes", "said_of_it"),
    [
        ({"rounds": 4}, "--rounds was 3, is 4"),
        ({"shapes": (1, 4)}, "--sizes was 1,2, is 1,4"),
        ({"devices": (0, 1, 2)}, "--tp (as NPUs) was 0,1, is 0,1,2"),
        ({"collectives": 9}, "--layers"),
        ({"graph_mode": "PIECEWISE"}, "--cudagraph-mode was FULL, is PIECEWISE"),
        ({"mode": "AIV"}, "HCCL_OP_EXPANSION_MODE was none, is AIV"),
        ({"python": "/opt/python"}, "--python or --env"),
        ({"model": "a"}, "--model"),
        ({"stack": {"hcomm": "9.1.0"}}, "hcomm was 8.5.0, is 9.1.0"),
        ({"emulated": False}, "--emulate was True, is False"),
    ],
)
def test_other_settings_are_told_by_name(tmp_path: Path, changes: dict[str, Any], said_of_it: str):
    journaling.written(tmp_path).close()
    before = lines(tmp_path)

    with pytest.raises(JournalError, match="--again") as error:
        open_journal(tmp_path, journaling.header(**changes))

    assert said_of_it in str(error.value)
    assert before == lines(tmp_path)


def test_again_puts_aside_what_is_there(tmp_path: Path):
    journaling.written(tmp_path).close()
    before = lines(tmp_path)

    journal = open_journal(tmp_path, journaling.header(rounds=5), again=True)

    assert [] == journal.attempts
    (aside,) = tmp_path.glob(f"*-{NAME}")
    assert before == aside.read_bytes().splitlines(keepends=True)


CAPTURED = {
    "rank": 0,
    "series": 0,
    "mode": None,
    "peers": None,
    "type": "captured",
    "capture": {
        "order": 1,
        "round": 0,
        "shape": 1,
        "begin_ns": 1,
        "seconds": 0.1,
        "h2d_copies": 1,
        "h2d_bytes": 1,
        "copy_seconds": 0.1,
    },
}


def changed(path: str, value: object) -> bytes:
    record = json.loads(json.dumps(CAPTURED))
    place, *names = path.split(".")
    inner = record
    for name in names:
        inner, place = inner[place], name
    inner[place] = value
    return json.dumps({"type": "measured", "record": record}).encode()


HOSTILE = [
    b"",
    b"null",
    b"[]",
    b"{",
    b"\xff\xfe",
    b"[" * 5000,
    b'{"type":"reproduction"}',
    b'{"type":"begun","arm":"ai_cpu","mode":null,"at":1}',
    b'{"type":"begun","arm":"as_configured","mode":null,"at":1,"more":1}',
    b'{"type":"ended","failure":5,"at":1}',
    changed("rank", 2),
    changed("rank", -1),
    changed("series", 9),
    changed("capture.round", 3),
    changed("capture.order", -1),
    changed("capture.order", 10**400),
    changed("capture.seconds", -1.0),
    changed("capture.seconds", 1e300),
    changed("capture.h2d_copies", 1 << 60),
    changed("capture.collectives", {"AllReduce": -5}),
    b" " * 100_000,
]


@pytest.mark.parametrize("line", HOSTILE, ids=range(len(HOSTILE)))
def test_a_line_that_nobody_wrote_is_refused_by_its_number(tmp_path: Path, line: bytes):
    journaling.written(tmp_path).close()
    with (tmp_path / NAME).open("ab") as file:
        file.write(line + b"\n")

    with pytest.raises(JournalError, match=f"line|{NAME}") as error:
        open_journal(tmp_path, journaling.header())

    assert "--again" in str(error.value)
    assert 500 > len(str(error.value))


def test_a_record_before_any_arm_is_refused(tmp_path: Path):
    open_journal(tmp_path, journaling.header()).close()
    with (tmp_path / NAME).open("ab") as file:
        file.write(changed("rank", 0) + b"\n")

    with pytest.raises(JournalError, match="line 2: no arm is under way"):
        open_journal(tmp_path, journaling.header())


@pytest.mark.parametrize("first", [b"hello\n", b'{"type":"begun"}\n', b"\n"])
def test_another_file_of_that_name_is_refused(tmp_path: Path, first: bytes):
    (tmp_path / NAME).write_bytes(first)

    with pytest.raises(JournalError, match="line 1"):
        open_journal(tmp_path, journaling.header())

    assert first == (tmp_path / NAME).read_bytes()


def test_one_writer_at_a_time(tmp_path: Path):
    first = open_journal(tmp_path, journaling.header())
    with pytest.raises(JournalError, match="another reproduction"):
        open_journal(tmp_path, journaling.header())
    first.close()

    open_journal(tmp_path, journaling.header()).close()


def test_what_is_no_file_of_ours_is_refused(tmp_path: Path):
    os.mkfifo(tmp_path / NAME)
    with pytest.raises(JournalError, match="regular file"):
        open_journal(tmp_path, journaling.header())
    (tmp_path / NAME).unlink()
    (tmp_path / NAME).symlink_to("elsewhere")
    with pytest.raises(JournalError, match=NAME):
        open_journal(tmp_path, journaling.header())
    assert not (tmp_path / "elsewhere").exists()
    (tmp_path / "file").touch()
    with pytest.raises(JournalError):
        open_journal(tmp_path / "file", journaling.header())


def test_every_capture_of_every_rank_is_kept(tmp_path: Path):
    journal = journaling.written(tmp_path)
    made = [one for attempt in journal.attempts for one in attempt.records]

    assert 2 * (3 + 2) * 2 == sum(isinstance(one, Captured) for one in made)
