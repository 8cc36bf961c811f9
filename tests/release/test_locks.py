"""What images and a release are made of is locked, with hashes, and in step with pyproject.toml."""

import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
FILES = ("images/requirements.txt", "images/extras.txt", "scripts/requirements.txt")
WANTED = {
    FILES[0]: PROJECT["project"]["dependencies"],
    FILES[1]: [one for name in ("web", "docker", "kubernetes") for one in EXTRAS[name]],
    FILES[2]: [*PROJECT["dependency-groups"]["release"], *EXTRAS["images"]],
}
_BLOCK = re.compile(
    r"^([a-z0-9][a-z0-9.-]*)==(\S+)((?: \\\n +--hash=sha256:[0-9a-f]{64})+)\n", re.MULTILINE
)


def locked(name):
    return {
        canonicalize_name(one): version
        for one, version, _ in _BLOCK.findall((ROOT / name).read_text())
    }


@pytest.mark.parametrize("name", FILES)
def test_every_line_is_a_version_with_hashes(name):
    left = _BLOCK.sub("", (ROOT / name).read_text())
    assert [line for line in left.splitlines() if not line.startswith("#")] == []
    assert left.endswith("# Made by `make lock`.\n")
    assert locked(name)


def test_no_package_is_locked_twice():
    names = [one for name in FILES for one in locked(name)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", FILES)
def test_what_pyproject_asks_for_is_locked_in_a_version_that_it_takes(name):
    there = {
        key: value for file in FILES[: FILES.index(name) + 1] for key, value in locked(file).items()
    }
    for asked in map(Requirement, WANTED[name]):
        version = there.get(canonicalize_name(asked.name))
        assert version, f"{name} lacks {asked}: make lock"
        assert asked.specifier.contains(version, prereleases=True), (
            f"{name} has {asked.name} {version}, and not {asked}"
        )


def test_what_locks_them_and_what_installs_them_name_the_same_files():
    assert re.findall(
        r'^    "(\S+\.txt)": "', (ROOT / "scripts" / "lock").read_text(), re.MULTILINE
    ) == list(FILES)
    dockerfile = (ROOT / "images" / "Dockerfile").read_text()
    assert "COPY images/requirements.txt images/extras.txt" in dockerfile
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for line in path.read_text().splitlines():
            if "pip install" in line:
                assert "--require-hashes" in line or "--no-index" in line, f"{path.name}: {line}"
