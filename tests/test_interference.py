"""bench/interference end to end, with a victim that needs no torch-npu, in blocks too short to show anything."""

import re

import pytest
from bench.interference import __main__ as bench
from bench.interference import taken
from bench.interference.estimate import Quads
from bench.interference.victim import Block, Cost, Size


def test_every_figure_is_taken(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(bench, "SIZE", Size(captures=2, replays=2))
    monkeypatch.setattr(taken, "PROBING", 2.0)
    monkeypatch.setattr(taken, "OBSERVING", 1.0)

    bench.main(["--victim", "acl", "--turns", "2", "--quads", "1"])

    shown = capsys.readouterr().out
    rows = dict(re.findall(r"^\| ([^|]+) \| (.+) \|$", shown, re.MULTILINE))
    for name in ("nothing", "the tracer in it", "the daemon, observing", "a probe, cores shared"):
        ratios = re.findall(r"(\S+) \((\S+) to (\S+)\)", rows[name])
        assert len(ratios) == 6
        assert all(0 < float(middle) <= float(high) for middle, _, high in ratios)
    assert rows["NPUs of a probe"] == "2 3"
    assert float(rows["its HBM on one of them, MB"]) > 0
    assert int(rows["its streams on one of them, of 1984"]) > 0
    taken_ports = rows["its ports; those of them that a server's HCCL takes by default"]
    assert re.fullmatch(r"[1-9]\d*; 0", taken_ports)
    assert float(rows["device-seconds a day, default schedule"]) > 0


def block(seconds: float) -> Block:
    return Block(*(Cost(seconds, seconds / 10, seconds * 2, 0.0),) * 2)


def test_what_slows_every_block_alike_is_found_whatever_the_drift():
    quads = Quads()
    for turn in (1.0, 2.0, 4.0):
        quads.next_turn()
        quads.add(
            "slower", [block(turn), block(turn * 1.3)], [block(turn * 1.21), block(turn * 1.3)]
        )
    ratio = quads.ratio("slower", "capture", "CPU")
    assert ratio.middle == pytest.approx(1.1)
    assert ratio.low == pytest.approx(1.1)
    assert ratio.high == pytest.approx(1.1)
    assert ratio.over(0.5).middle == pytest.approx(1.05)
