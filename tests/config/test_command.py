"""`capture-canary config`, as it is typed."""

import json
from pathlib import Path

import pytest

from capture_canary.cli import main
from capture_canary.config.keys import keys


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text("probe:\n  interval: 2h\n")
    return path


def test_check_of_a_good_file(path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["config", "check", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: no problem found\n"


def test_check_of_a_bad_file_does_not_depend_on_the_environment(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CAPTURE_CANARY_PROBE__INTERVAL", "1h")
    path.write_text("probe:\n  interval: 2\npaused: x\n")
    assert main(["config", "check", str(path)]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"{path}:2: probe.interval: '2' is not a duration")
    assert f"{path}:3: paused" in told


def test_check_of_a_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["config", "check", str(tmp_path / "x")]) == 2
    assert capsys.readouterr().err == f"{tmp_path}/x: No such file or directory\n"


def test_show_tells_values_and_where_they_came_from(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CAPTURE_CANARY_PAUSED", "true")
    flags = ["--config", str(path), "--listen", ":1", "--set", "gate.retry=1m"]
    assert main(["config", "show", *flags]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == len(keys())
    assert "listen: :1 # --listen" in lines
    assert "gate.retry: 1m # --set gate.retry" in lines
    assert "paused: true # CAPTURE_CANARY_PAUSED" in lines
    assert f"probe.interval: 2h # {path}:2" in lines
    assert "probe.ranks: 2 # built in" in lines


def test_show_as_json(path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["config", "show", "--json", "--config", str(path)]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["probe.interval"] == {"value": "2h", "source": "file", "where": f"{path}:2"}
    assert shown["probe.shapes"]["value"] == [256, 1024, 4096]
    assert shown["web.config_file"]["value"] is None


def test_show_of_what_cannot_be_used(capsys: pytest.CaptureFixture[str]):
    assert main(["config", "show", "--set", "nonsense"]) == 2
    assert main(["config", "show", "--set", "probe.intervall=1h"]) == 2
    told = capsys.readouterr().err
    assert "--set: 'nonsense' is not KEY=VALUE" in told
    assert "--set: unknown key 'probe.intervall'; did you mean probe.interval?" in told


def test_the_file_may_be_named_by_a_variable(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CAPTURE_CANARY_CONFIG", str(path))
    assert main(["config", "show"]) == 0
    assert "2h" in capsys.readouterr().out


def test_schema_and_reference_are_printed(capsys: pytest.CaptureFixture[str]):
    assert main(["config", "schema"]) == 0
    assert json.loads(capsys.readouterr().out)["$defs"]["Config"]
    assert main(["config", "reference"]) == 0
    assert capsys.readouterr().out.startswith("### Top level")
