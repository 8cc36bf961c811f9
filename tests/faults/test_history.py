"""Faults of the history's file: the verdict comes all the same, and nothing that can be used is lost."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from capture_canary.store import schema
from tests.faults.node import injects, nothing_left
from tests.faults.table import GROWING
from tests.service.parts import Parts

SEED = 20261201


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A history with one probe."""
    parts = Parts(tmp_path, GROWING)
    assert parts.attempt().reports["probe"].verdict == "degraded"
    parts.store.close()
    return tmp_path / "s" / "history.db"


def verdict(folder: Path, *, problem: str | None = None) -> None:
    """Hold that a daemon started now comes to its verdict, and has or has not its history on disk."""
    parts = Parts(folder, GROWING)
    assert parts.attempt().reports["probe"].verdict == "degraded"
    assert parts.store.probes()[0].verdict == "degraded"
    assert (problem is None) == (parts.store.problem is None)
    assert problem is None or problem in (parts.store.problem or "")
    parts.store.close()


@injects("the history is damaged")
def test_damaged(database: Path, tmp_path: Path):
    choice = random.Random(SEED)  # noqa: S311  # where damage falls is no secret
    with nothing_left(GROWING):
        for _ in range(8):
            data = bytearray(database.read_bytes())
            for _ in range(6):
                at = choice.randrange(len(data))
                data[at : at + 64] = choice.randbytes(min(64, len(data) - at))
            database.write_bytes(data)
            verdict(tmp_path)


@injects("the history is locked")
def test_locked(database: Path, tmp_path: Path):
    with nothing_left(GROWING):
        with closing(sqlite3.connect(database, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            verdict(tmp_path, problem="locked")
            other.execute("ROLLBACK")
        verdict(tmp_path)


@injects("the history is from the future")
def test_from_the_future(database: Path, tmp_path: Path):
    with closing(sqlite3.connect(database)) as newer:
        newer.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    with nothing_left(GROWING):
        verdict(tmp_path)
    (aside,) = database.parent.glob("history.db.newer*Z")
    with closing(sqlite3.connect(aside)) as kept:
        assert kept.execute("PRAGMA user_version").fetchone() == (schema.VERSION + 1,)
        assert kept.execute("SELECT count(*) FROM probes").fetchone() == (1,)


@injects("the history is removed")
def test_removed(database: Path, tmp_path: Path):
    with nothing_left(GROWING):
        parts = Parts(tmp_path, GROWING)
        database.unlink()
        assert parts.attempt().reports["probe"].verdict == "degraded"
        assert [change.verdict for change in parts.store.present()] == ["degraded"]
        parts.store.close()
        verdict(tmp_path)
