"""What `probe` and `reproduce` have in common: bad input is refused by name, before anything is measured."""

import argparse
import os
import sys
from pathlib import Path

import pytest

from capture_canary import cli
from capture_canary.commands import measuring


@pytest.mark.parametrize("command", ["probe", "reproduce"])
@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--plot", "x.txt"),
        ("--plot", "[/red].txt"),
        ("--model", "/nonexistent/[/red]"),
        ("--model", "a\0b"),
        ("--env", "nonesuch"),
        ("--env", "../up"),
        ("--emulate", "soc=zz"),
        ("--python", "/nonexistent/[/red]"),
        ("--layers", "0"),
        ("--budget", "nan"),
        ("--rounds", "x"),
    ],
)
def test_what_is_none_is_refused_by_name(
    command: str, flag: str, value: str, capsys: pytest.CaptureFixture[str]
):
    try:
        code = cli.main([command, f"{flag}={value}"])
    except SystemExit as end:
        code = int(end.code or 0)

    assert 2 == code
    assert flag in capsys.readouterr().err


def options(**given: object) -> argparse.Namespace:
    return argparse.Namespace(
        **{"emulate": None, "env": None, "python": sys.executable, "model": None, **given}
    )


def test_relative_paths_are_told_absolute_to_processes_that_work_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    Path("model").mkdir()
    Path("model/config.json").write_text("{}")
    Path("python").symlink_to(sys.executable)

    python, _ = measuring.stack(options(python="./python"))

    assert f"{tmp_path}/python" == python, "a venv's link is not followed"
    assert os.access(python, os.X_OK)
    assert f"{tmp_path}/model" == measuring.model(options(model="model"))
