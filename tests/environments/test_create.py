"""Making an environment where something is missing: said in words, and nothing half made is called ready."""

import dataclasses
import sys
from pathlib import Path

import pytest

from capture_canary import environments
from capture_canary.environments.recipes import Recipe


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    """A recipe of a package that no index has."""
    wheels = tmp_path / "made-up.txt"
    wheels.write_text("capture-canary-made-up-package==1.0\n")
    return dataclasses.replace(
        environments.recipe("torch-2.13.0"), name="made-up", wheels=wheels, sources=None
    )


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)


def test_no_network_is_said_to_be_that_and_the_venv_stays_for_the_next_run(
    recipe: Recipe, tmp_path: Path
) -> None:
    said: list[str] = []
    for _ in range(2):
        with pytest.raises(environments.CreateError, match="pip reached no package index"):
            environments.create(recipe, tmp_path / "envs", sys.executable, said.append)
    environment = environments.Environment("made-up", tmp_path / "envs" / "made-up")
    assert environment.python.exists()
    assert environment.made() == ""
    assert [line.split()[0] for line in said] == ["making", "installing", "installing"]


def test_a_python_without_venv_is_said_to_be_that(recipe: Recipe, tmp_path: Path) -> None:
    with pytest.raises(environments.CreateError, match="-m venv failed"):
        environments.create(recipe, tmp_path / "envs", "/bin/false", lambda _: None)
