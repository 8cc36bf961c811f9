"""The files between daemon and `k8s`: replaced whole, and believed only in the right form."""

import os
from pathlib import Path

import msgspec
import pytest
from tests.builders import make_report

from capture_canary.kubernetes.exchange import MAX_FILE, Exchange, Request, Result
from capture_canary.kubernetes.result import MAX_MESSAGE, packed
from capture_canary.model import Fact

REQUEST = Request(id="1", at=2.0)


def test_what_is_written_is_read(tmp_path: Path):
    exchange = Exchange(tmp_path / "new")
    exchange.write(REQUEST)
    assert REQUEST == exchange.read(Request)
    exchange.remove(Request)
    assert exchange.read(Request) is None
    assert [] == list((tmp_path / "new").iterdir())


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"id": 1}', b"null", b"\xff", b" " * (MAX_FILE + 1), b'{"id":"1","at":NaN}'],
)
def test_nonsense_is_nothing(tmp_path: Path, content: bytes):
    (tmp_path / "request.json").write_bytes(content)
    assert Exchange(tmp_path).read(Request) is None


def test_what_is_no_file_is_nothing_and_nobody_waits_for_it(tmp_path: Path):
    path = tmp_path / "request.json"
    os.mkfifo(path)
    assert Exchange(tmp_path).read(Request) is None
    path.unlink()
    path.symlink_to("/etc/passwd")
    assert Exchange(tmp_path).read(Request) is None
    path.unlink()
    path.mkdir()
    assert Exchange(tmp_path).read(Request) is None


@pytest.mark.parametrize("letter", ["a", "的", '"', "\x01"])
def test_a_result_always_fits(letter: str):
    long = make_report()
    stack = {f"{letter * 3}{n}": Fact(value=letter * 9000, source=letter * 9000) for n in range(99)}
    long = msgspec.structs.replace(
        long, reason=letter * 9000, mode=letter * 9000, mode_source=letter * 9000, stack=stack
    )
    message = packed(long, took=1.0, devices=2)
    assert len(message) <= MAX_MESSAGE
    assert long.verdict == msgspec.json.decode(message, type=Result).report.verdict


def test_a_result_keeps_all_but_the_series():
    whole = make_report()
    found = msgspec.json.decode(packed(whole, took=1.5, devices=2), type=Result)
    assert (1.5, 2) == (found.took, found.devices)
    assert (whole.verdict, whole.cause, whole.reason) == (
        found.report.verdict,
        found.report.cause,
        found.report.reason,
    )
    assert [] == found.report.series
