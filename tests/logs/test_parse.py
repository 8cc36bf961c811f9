import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capture_canary.logs.evidence import FileEvidence, slopes
from capture_canary.logs.parse import Bar, BrokenBar, Exhaustion, Finish, events

DATA = Path(__file__).parent.parent / "data" / "vllm-logs"
EXPECTED: dict[str, dict[str, Any]] = json.loads((DATA / "expected.json").read_text())


def read(text: str) -> FileEvidence:
    evidence = FileEvidence()
    for line in text.replace("\r", "\n").split("\n"):
        for event in events(line):
            evidence.add(event)
    return evidence


@pytest.mark.parametrize("name", [n for n, want in EXPECTED.items() if "graphs" in want])
def test_reads_what_servers_print(name: str) -> None:
    want, evidence = EXPECTED[name], read((DATA / name).read_text())
    run = evidence.load()
    assert run is not None
    assert (run.total, run.done, run.mode) == (want["graphs"], want["graphs"], want["mode"])
    assert [f.seconds for f in evidence.finishes] == want["finished_seconds"]
    assert [f.gib for f in evidence.finishes] == want["took_gib"]
    assert evidence.broken_bars == want.get("bars_rejected", 0)
    assert evidence.exhausted is None
    judgement = evidence.judge()
    assert judgement.verdict == "unknown"
    assert judgement.cause == ("suspect" if want["degrading"] else None)
    if "early_seconds_per_graph" in want:
        found = slopes(run)
        assert found is not None
        assert found.early == pytest.approx(want["early_seconds_per_graph"])
        assert found.late == pytest.approx(want["late_seconds_per_graph"])


def test_recognises_exhausted_streams() -> None:
    evidence = read((DATA / "stream-exhaustion.log").read_text())
    assert evidence.exhausted == Exhaustion(EXPECTED["stream-exhaustion.log"]["code"])
    judgement = evidence.judge()
    assert (judgement.verdict, judgement.cause) == ("unknown", None)
    assert "ran out of streams" in judgement.reason


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("[SqCqManage]Alloc sq cq fail. retCode=0x7020023", 207005),
        ("ACL graph capture failed with a known stream-resource exhaustion signature. …", 207008),
        ("ACLgraph has insufficient available streams to capture the configured number", 207008),
        ("error code is 207005 [Resource_Error] notify", None),
        ("rtMemcpy:ErrCode=107030, desc=[the current capture mode does not support]", None),
        ("graph 12070081 captured; stream closed", None),
    ],
)
def test_which_errors_are_exhausted_streams(line: str, code: int | None) -> None:
    assert [e.code for e in events(line) if isinstance(e, Exhaustion)] == ([code] if code else [])


@pytest.mark.parametrize(
    ("line", "bar"),
    [
        (
            "Capturing CUDA graphs (FULL):  50%|█████     | 10/20 [00:15<00:18,  1.85s/it]",
            Bar("", "FULL", 10, 20, 15),
        ),
        (
            "Capturing CUDA graphs:  50%|#####     | 10/20 [1:00:15<1:00:18,  1.85it/s]",
            Bar("", "", 10, 20, 3615),
        ),
        (
            "Capturing prefill CUDA graphs (FULL): 0%|          | 0/3 [00:00<?, ?it/s]",
            Bar("", "FULL", 0, 3, 0),
        ),
        (
            "Capturing CUDA graph shapes: 100%|██| 67/67 [00:21<00:00, 3.07it/s]",
            Bar("", "", 67, 67, 21),
        ),
        (
            (
                "\x1b[36m(Worker pid=1)\x1b[0m Capturing ACL graphs (decode, FULL): 4%|\u00e2\u0096| "
                "1/25 [00:01<00:30,\x1b[0m  1.2s/it]"
            ),
            Bar("decode", "FULL", 1, 25, 1),
        ),
    ],
)
def test_bars_of_all_versions(line: str, bar: Bar) -> None:
    assert list(events(line)) == [bar]


def test_a_json_log_line_holds_many_bars() -> None:
    bars = "\\r".join(
        f"Capturing CUDA graphs (decode, FULL):  {n}%|\\u2588 | {n}/20 [00:0{n}<00:09,  1.06s/it]"
        for n in range(4)
    )
    line = json.dumps({"log": bars, "stream": "stderr"}).replace("\\\\", "\\")
    assert [e.done for e in events(line) if isinstance(e, Bar)] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "line",
    [
        "Capturing CUDA graphs (decode, FULL):  10%|█ | 21/20 [00:02<00:19,  1.06s/it]",
        "Capturing CUDA graphs (decode, FULL):  10%|█ | 2/20 [02<00:19,  1.06s/it]",
        "Capturing CUDA graphs (decode, FULL):  10%|█ | 2/20 [1:2:3:4<00:19,  1.06s/it]",
        "Capturing CUDA graphs (decode, FULL):  10%|█ | 2/20 [::<00:19,  1.06s/it]",
        "Capturing CUDA graphs (decode, FULL):  10%|█",
    ],
)
def test_a_bar_that_makes_no_sense_is_counted(line: str) -> None:
    assert list(events(line)) == [BrokenBar()]


def test_the_nearest_process_wrote_the_finish_line() -> None:
    line = (
        "(EngineCore_DP0 pid=3000) (Worker_TP0_EP0 pid=3001) INFO 11-04 13:20:05 "
        "[model_runner_v1.py:3607] Graph capturing finished in 22 secs, took -0.26 GiB"
    )
    assert list(events(line)) == [Finish(22, -0.26, "Worker_TP0_EP0", 3001)]
    assert list(events("Graph capturing finished in 5 secs")) == [Finish(5, None, None, None)]


PIECES = [
    "Capturing CUDA graphs (decode, FULL):  10%|",
    "| 2/20 [00:02<00:19,  1.06s/it]",
    "Graph capturing finished in 22 secs, took ",
    "(Worker pid=",
    "207008 ",
    "\x1b[",
    "9" * 30,
    "|",
    "\0\ufffd█",
]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=20), max_size=30).map("".join))
def test_hostile_text_never_raises(text: str) -> None:
    for event in events(text):
        if isinstance(event, Bar):
            assert 0 <= event.done <= event.total


@pytest.mark.parametrize("piece", [*PIECES, "Capturing CUDA graphs ", "Capturing CUDA graphs (a"])
def test_time_grows_no_faster_than_the_text(piece: str) -> None:
    def seconds(times: int) -> float:
        text = "Capturing " + piece * times
        begin = time.process_time()
        for _ in range(3):
            list(events(text))
        return time.process_time() - begin

    small = 8192 // len(piece)
    seconds(small)
    # Quadratic would be 64 times as much; the constant is for the clock.
    assert seconds(8 * small) < 24 * seconds(small) + 0.2
