"""`capture-canary images` without an Engine."""

import json

import pytest

from capture_canary.cli import main
from capture_canary.images import engine


def test_list_prints_the_matrix_as_json(capsys):
    assert main(["images", "list", "--soc", "a3", "--cann", "9.1.0", "--json", "--all"]) == 0
    cells = {cell["name"]: cell for cell in json.loads(capsys.readouterr().out)}
    core = cells["9.1.0-a3-ubuntu22.04"]
    assert core["base"] == "quay.io/ascend/cann:9.1.0-a3-ubuntu22.04-py3.12"
    assert core["exposed"] is False
    assert cells["emulated-9.1.0-a3-debian12"]["kind"] == "emulated"


def test_list_shows_what_cannot_be_only_when_asked(capsys):
    assert main(["images", "list", "--cann", "9.2.0-beta.1"]) == 0
    assert "9.2.0-beta.1" not in capsys.readouterr().out
    assert main(["images", "list", "--cann", "9.2.0-beta.1", "--all"]) == 0
    assert "unavailable" in capsys.readouterr().out


def test_a_cell_that_does_not_exist_is_wrong_usage(capsys):
    assert main(["images", "list", "--cann", "7.0"]) == 2
    assert "no CANN '7.0' in the matrix" in capsys.readouterr().err


def test_an_engine_that_is_not_there_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(engine.EngineError, match=r"none\.sock is not there: start it, or name"):
        engine.connect()
