"""The metrics as a file: whole at every moment, new after each change, and no harm where it cannot be written."""

import os
import stat
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.export.test_metrics import DEGRADED

from capture_canary.export.exposition import Exposition
from capture_canary.export.textfile import TextFile


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "collector"
    folder.mkdir()
    return folder / "canary.prom"


@pytest.fixture
def text(daemon, file) -> TextFile:
    return TextFile(Exposition(lambda: daemon.view), lambda: file)


def test_it_holds_what_a_scrape_gets_and_follows(daemon, file, text):
    text.poll()
    assert file.read_bytes() == Exposition(lambda: daemon.view).scrape()[0]
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    daemon.state(DEGRADED)
    text.poll()
    assert 'verdict="degraded"} 1.0' in file.read_text()


def test_without_a_change_nothing_is_written(file, text):
    text.poll()
    before = file.stat().st_ino
    text.poll()
    assert file.stat().st_ino == before


def test_a_reader_never_sees_half_of_it(daemon, file, text):
    text.poll()
    with file.open("rb") as reader:
        whole = file.read_bytes()
        daemon.state(DEGRADED)
        text.poll()
        assert reader.read() == whole
    assert [*file.parent.iterdir()] == [file]


def test_a_folder_that_is_missing_is_said_once_and_used_when_it_comes(file, text):
    file.parent.rmdir()
    with capture_logs() as logs:
        text.poll()
        text.poll()
    assert [(one["event"], one["path"]) for one in logs] == [("textfile_not_written", str(file))]
    file.parent.mkdir()
    text.poll()
    assert file.exists()


def test_what_another_left_there_is_not_followed(file, text, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (file.parent / f".{file.name}.{os.getpid()}").symlink_to(victim)
    text.poll()
    assert victim.read_text() == "mine"
    assert not file.is_symlink()
    assert file.exists()


def test_no_file_is_asked_for(daemon, tmp_path):
    TextFile(Exposition(lambda: daemon.view), lambda: None).poll()
    assert [one.name for one in tmp_path.iterdir()] == ["state"]
