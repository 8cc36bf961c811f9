"""What is in an image, and images as files, by a real engine: the injector's, which has our packages."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from tests.real.conftest import need
from tests.real.test_injector import BASE, INJECTOR, engine, made

__all__ = ["engine", "made"]  # fixtures
pytestmark = pytest.mark.real


@pytest.fixture
def environ(docker, engine):
    assert engine
    return {**os.environ, "DOCKER_HOST": f"unix://{docker[1]}"}


@pytest.fixture
def images(environ):
    """`capture-canary images …` on the engine."""

    def run(*words):
        command = [sys.executable, "-m", "capture_canary.cli", "images", *words]
        return subprocess.run(
            command, env=environ, capture_output=True, text=True, check=False, timeout=300
        )

    return run


def locked(made):
    """Versions by name of what the image was made of."""
    names = [
        path.name.removesuffix(".dist-info") for path in (made / "payload").rglob("*.dist-info")
    ]
    return {name.rpartition("-")[0].lower(): name.rpartition("-")[2] for name in names}


def test_the_sbom_is_valid_and_names_what_is_in_the_image(images, made, tmp_path):
    file = tmp_path / "sbom.json"
    done = images("sbom", INJECTOR, "--out", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(file.read_text()) is None
    found = {
        one["name"].lower().replace("-", "_"): one["version"]
        for one in json.loads(file.read_text())["components"]
    }
    assert found == locked(made)
    assert {"capture_canary", "msgspec", "uvicorn"} <= set(found)


def test_an_image_without_us_has_no_sbom(images):
    done = images("sbom", BASE)
    assert (done.returncode, "it is not an image of ours" in done.stderr) == (1, True)
    done = images("sbom", "nowhere:1")
    assert (done.returncode, "there is no such image here" in done.stderr) == (1, True)


def test_what_is_exported_can_be_loaded_and_is_not_written_twice(images, engine, tmp_path):
    done = images("export", INJECTOR, "nowhere:1", BASE, "--out", str(tmp_path))
    assert (done.returncode, "nowhere:1: there is no such image here" in done.stderr) == (1, True)
    listed = json.loads((tmp_path / "images.json").read_text())
    assert sorted(one["image"] for one in listed) == sorted([INJECTOR, BASE])
    subprocess.run([need("sha256sum"), "-c", "SHA256SUMS"], check=True, cwd=tmp_path)
    ids = {one["image"]: json.loads(engine("image", "inspect", one["image"]))[0]["Id"] for one in listed}  # fmt: skip
    assert {one["image"]: one["id"] for one in listed} == ids
    (archive,) = [one["file"] for one in listed if one["image"] == INJECTOR]
    assert INJECTOR in engine("load", "-i", str(tmp_path / archive))

    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.tar")}
    (tmp_path / archive).write_bytes(b"torn")
    done = images("export", INJECTOR, BASE, "--out", str(tmp_path))
    assert (done.returncode, done.stderr.count("is there"), done.stderr.count("written")) == (0, 1, 1)  # fmt: skip
    after = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.tar")}
    assert {name for name in after if after[name] != before[name]} == {archive}
    subprocess.run([need("sha256sum"), "-c", "SHA256SUMS"], check=True, cwd=tmp_path)


def test_a_full_disk_is_said_and_leaves_nothing(images, tmp_path):
    subprocess.run([need("mount"), "-t", "tmpfs", "-o", "size=1m", "tmpfs", tmp_path], check=True)
    try:
        done = images("export", INJECTOR, "--out", str(tmp_path))
        assert (done.returncode, "No space left on device" in done.stderr) == (1, True)
        assert list(tmp_path.iterdir()) == []
    finally:
        subprocess.run([need("umount"), tmp_path], check=True)


def test_an_export_that_is_ended_leaves_no_part(environ, tmp_path):
    command = [sys.executable, "-m", "capture_canary.cli", "images", "export", INJECTOR, "--out"]
    with subprocess.Popen([*command, tmp_path], env=environ, stderr=subprocess.PIPE) as one:
        give_up = time.monotonic() + 60
        while not list(tmp_path.iterdir()) and one.poll() is None:
            assert time.monotonic() < give_up
        one.send_signal(signal.SIGTERM)
        one.communicate(timeout=60)
    assert not list(tmp_path.glob(".*.part"))
