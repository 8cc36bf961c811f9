from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capture_canary.gate.latch import Latch, LatchFile, LatchState


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "probe-latch.json"


def test_nothing_is_latched_at_first(path: Path) -> None:
    assert Latch(LatchFile(path)).why() is None
    assert not path.exists()


def test_latched_over_restarts_until_the_file_is_deleted(path: Path) -> None:
    Latch(LatchFile(path)).trip("davinci0 has 900 MB of HBM more in use than before", 5.0)
    latch = Latch(LatchFile(path))
    why = latch.why()
    assert why is not None
    assert "900 MB" in why
    assert f"delete {path}" in why
    path.unlink()
    assert latch.why() is None


def test_the_first_reason_stays(path: Path) -> None:
    latch = Latch(LatchFile(path))
    latch.trip("first", 1.0)
    latch.trip("second", 2.0)
    assert LatchFile(path).load() == LatchState(latched="first", at=1.0)


def test_two_device_errors_in_a_row_latch_over_a_restart(path: Path) -> None:
    latch = Latch(LatchFile(path))
    latch.device_error("507899", 1.0)
    assert latch.why() is None
    Latch(LatchFile(path)).device_error("507899 again", 2.0)
    assert "2 device errors in a row" in (latch.why() or "")
    latch.success()
    assert latch.why() is not None


def test_an_operator_sets_how_many_errors_latch(path: Path) -> None:
    latch = Latch(LatchFile(path))
    latch.device_error("one", 1.0, limit=3)
    latch.device_error("two", 2.0, limit=3)
    assert latch.why() is None
    latch.device_error("three", 3.0, limit=3)
    assert "3 device errors" in (latch.why() or "")


def test_a_success_between_starts_anew(path: Path) -> None:
    latch = Latch(LatchFile(path))
    latch.device_error("one", 1.0)
    latch.success()
    latch.device_error("another", 2.0)
    assert latch.why() is None


def test_a_folder_that_cannot_be_written_still_latches(tmp_path: Path) -> None:
    latch = Latch(LatchFile(tmp_path / "missing" / "probe-latch.json"))
    latch.device_error("one", 1.0)
    latch.device_error("two", 2.0)
    assert "restart the daemon" in (latch.why() or "")


def test_a_path_that_cannot_be_read_is_latched(path: Path) -> None:
    path.mkdir()
    assert "can't be read" in (Latch(LatchFile(path)).why() or "")


def test_leaves_no_other_file(path: Path) -> None:
    Latch(LatchFile(path)).trip("why", 1.0)
    assert list(path.parent.iterdir()) == [path]


@given(st.binary(max_size=200))
def test_a_broken_file_is_latched(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("latch") / "probe-latch.json"
    path.write_bytes(b"\xff" + data)
    why = Latch(LatchFile(path)).why()
    assert why is not None
    assert "not a latch file" in why
