"""The bake file, and the Dockerfile that it builds."""

import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from capture_canary.cli import main
from capture_canary.images import bake, matrix
from capture_canary.images.source import DOCKERFILE, PARTS, SourceError, find_source, pack

HERE = Path(__file__).parents[2]
SCHEMA = json.loads((HERE / "tests" / "data" / "bake.schema.json").read_text())


def test_the_bake_file_keeps_its_schema_and_names_what_there_is(capsys):
    assert main(["images", "bake"]) == 0
    file = json.loads(capsys.readouterr().out)
    jsonschema.validate(file, SCHEMA)
    for name, group in file["group"].items():
        assert set(group["targets"]) <= set(file["target"]), name
    assert set(file["target"]) == {
        bake.target(cell) for cell in matrix.load() if cell.kind == "real" and cell.buildable
    }


def test_every_argument_is_one_of_the_dockerfile():
    known = {
        word.partition("=")[0]
        for line in (HERE / DOCKERFILE).read_text().splitlines()
        if line.startswith("ARG ")
        for word in line.split()[1:]
    }
    for target in bake.bake(matrix.load())["target"].values():
        assert set(target["args"]) <= known


def test_the_dockerfile_needs_no_package_manager_and_no_buildkit():
    text = (HERE / DOCKERFILE).read_text()
    assert not re.search(r"^RUN .*\b(apt|apt-get|yum|dnf|apk|microdnf)\b", text, re.MULTILINE)
    assert not re.search(
        r"^# *syntax=|RUN +--mount|COPY +--(link|parents|exclude)|<<", text, re.MULTILINE
    )


@pytest.mark.parametrize(
    "path", sorted(str(one.relative_to(HERE)) for one in HERE.glob("images/**/*Dockerfile"))
)
def test_hadolint_finds_nothing(path):
    command = Path(sys.executable).with_name("hadolint")
    if not command.exists():
        pytest.skip("hadolint is missing")
    done = subprocess.run([command, path], cwd=HERE, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_context_is_the_same_for_the_same_sources(tmp_path):
    first, second = pack(HERE, tmp_path / "a.tar"), pack(HERE, tmp_path / "b.tar")
    assert first == second
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()


def test_docker_ignores_all_that_the_context_leaves_out():
    lines = (HERE / ".dockerignore").read_text().splitlines()
    assert {line[1:] for line in lines if line.startswith("!")} == set(PARTS)


def test_sources_that_are_not_there_are_named(tmp_path):
    with pytest.raises(SourceError, match=re.escape(f"no {DOCKERFILE} in {tmp_path}")):
        find_source(tmp_path)
