"""The environments that can be made, and what is said of one that cannot."""

import re
import sys
from pathlib import Path

import pytest

from capture_canary import environments
from capture_canary.environments import recipes


@pytest.mark.parametrize("name", environments.names())
def test_every_requirement_is_pinned_and_named_once_a_python(name: str) -> None:
    recipe = environments.recipe(name)
    for minor in recipe.pythons:
        seen: set[str] = set()
        for line in recipe.wheels.read_text().splitlines():
            if line.startswith("#"):
                continue
            requirement = re.fullmatch(
                r"([a-z0-9-]+)==[\w.]+(; python_version (<|>=) \"3\.(\d+)\")?", line
            )
            assert requirement, line
            bound = int(requirement[4] or 0)
            if (requirement[3] == "<" and minor >= bound) or (
                requirement[3] == ">=" and minor < bound
            ):
                continue
            assert requirement[1] not in seen
            seen.add(requirement[1])
        assert {"torch", "torch-npu"} <= seen


def test_an_unknown_name_is_answered_with_those_there_are() -> None:
    with pytest.raises(
        environments.RecipeError, match=r"no environment is called 'torch'.*torch-2\.9\.0"
    ):
        environments.recipe("torch")


@pytest.mark.parametrize("name", ["../torch-2.9.0", "vllm-0.23.0.build", ""])
def test_a_name_is_never_a_path_nor_a_part(name: str) -> None:
    with pytest.raises(environments.RecipeError):
        environments.recipe(name)


def test_another_python_is_taken_where_this_one_is_too_new(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recipe = environments.recipe("torch-2.9.0")
    monkeypatch.setattr(recipes, "_minor_here", lambda: 19)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(environments.RecipeError, match=r"Python 3\.10 to 3\.12; this is 3\.19"):
        recipe.python()
    script = tmp_path / "python3.11"
    script.write_text("#!/bin/sh\necho 11\n")
    script.chmod(0o755)
    assert recipe.python() == str(script)
    script.write_text("#!/bin/sh\nexit 127\n")  # pyenv's shims of versions that are not there
    with pytest.raises(environments.RecipeError, match="give --python"):
        recipe.python()


def test_this_python_is_taken_where_it_can_be() -> None:
    recipe = environments.recipe("torch-2.13.0")
    if sys.version_info.minor in recipe.pythons:
        assert recipe.python() == sys.executable


def test_where_they_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CAPTURE_CANARY_ENVS", str(tmp_path))
    assert environments.default_dir() == tmp_path
    monkeypatch.delenv("CAPTURE_CANARY_ENVS")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert environments.default_dir() == tmp_path / "capture-canary" / "environments"


def test_one_that_is_not_ready_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(environments.RecipeError, match=r"capture-canary env create torch-2\.9\.0"):
        environments.find("torch-2.9.0", tmp_path)
    made = environments.Environment("torch-2.9.0", tmp_path / "torch-2.9.0")
    (made.folder / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    made.mark("of other requirements")
    with pytest.raises(environments.RecipeError, match="not ready"):
        environments.find("torch-2.9.0", tmp_path)
    made.mark(environments.recipe("torch-2.9.0").digest())
    assert environments.find("torch-2.9.0", tmp_path) == made
