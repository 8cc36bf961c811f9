"""`capture-canary env` as a user meets it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from capture_canary import environments
from capture_canary.cli import main

SHOW = "import json, os; print(json.dumps(dict(os.environ)))"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an environment that is ready, and has nothing in it."""
    made = environments.Environment("torch-2.9.0", tmp_path / "envs" / "torch-2.9.0")
    (made.folder / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    made.mark(environments.recipe(made.name).digest())
    return tmp_path / "envs"


def execute(folder: Path, tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "capture_canary.cli", "env", "exec", "--dir", str(folder)]
    environ = {
        **os.environ,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "LD_LIBRARY_PATH": "/opt/machines/own",
    }
    return subprocess.run(
        [*command, *words], env=environ, capture_output=True, text=True, check=False
    )


def test_list_tells_what_is_made(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", "list", "--dir", str(folder)]) == 0
    made = {line.split()[0]: line.split()[1] for line in capsys.readouterr().out.splitlines()}
    assert made == dict.fromkeys(environments.names(), "-") | {"torch-2.9.0": "made"}


def test_path_is_printed_of_what_is_made_only(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["env", "path", "--dir", str(folder), "torch-2.9.0"]) == 0
    assert capsys.readouterr().out == f"{folder / 'torch-2.9.0'}\n"
    assert main(["env", "path", "--dir", str(folder), "torch-2.13.0"]) == 2
    assert "capture-canary env create torch-2.13.0" in capsys.readouterr().err


def test_an_unknown_name_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for action in ("create", "path", "exec"):
        assert main(["env", action, "--dir", str(tmp_path), "torch-0.1"]) == 2
        assert "there are torch-2.10.0, torch-2.13.0" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_command_finds_the_emulated_cann_first_then_stand_ins_then_the_machine(
    folder: Path, tmp_path: Path
) -> None:
    done = execute(
        folder, tmp_path, "--emulate", "cann=9.1.0", "torch-2.9.0", sys.executable, "-c", SHOW
    )
    seen = json.loads(done.stdout)
    home = seen["ASCEND_HOME_PATH"]
    assert Path(home, "lib64", "libhccl.so").exists()
    standins = str(folder / "torch-2.9.0" / "emulated" / "lib64")
    assert seen["LD_LIBRARY_PATH"].split(":") == [f"{home}/lib64", standins, "/opt/machines/own"]
    assert seen["PATH"].split(":")[:2] == [f"{home}/bin", str(folder / "torch-2.9.0" / "bin")]
    assert seen["CAPTURE_CANARY_EMULATE"].startswith("cann=9.1.0,")


def test_a_bad_setting_or_command_is_named(folder: Path, tmp_path: Path) -> None:
    done = execute(folder, tmp_path, "--emulate", "cann=latest", "torch-2.9.0", "true")
    assert (done.returncode, "cann=latest" in done.stderr) == (2, True)
    done = execute(folder, tmp_path, "torch-2.9.0", "no-such-command")
    assert (done.returncode, "no-such-command: No such file" in done.stderr) == (3, True)
