"""`reproduce --compare`: the same in another image, by a real Docker engine, with a real vLLM in it.

The image is a root with nothing in it but what says which CANN it has; Python, vLLM and our command are those of this
machine, mounted.
"""

import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from tests.real import needing

import capture_canary
from capture_canary import environments
from capture_canary.environments import Environment
from capture_canary.images.run import LABEL
from capture_canary.native import native_dir
from capture_canary.report import charts

pytestmark = pytest.mark.real

NAME = "vllm-0.23.0"
SECONDS = 900
K, ROUNDS, SIZES = 5, 3, (1, 2)
LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}


def root(file: Path) -> Path:
    """An empty root on which this machine's /usr can be mounted."""
    with tarfile.open(file, "w") as tar:
        for name in ("usr", "etc", "tmp", "proc", "dev", "sys"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(folder)
        for name, target in LINKS.items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            tar.addfile(link)
        passwd = b"root:x:0:0::/tmp:/bin/sh\n"
        entry = tarfile.TarInfo("etc/passwd")
        entry.size = len(passwd)
        tar.addfile(entry, io.BytesIO(passwd))
    return file


@pytest.fixture(scope="module")
def environment():
    return needing.environment(NAME)


@pytest.fixture(scope="module")
def image(docker, environment, tmp_path_factory) -> str:
    """An image that says it has CANN 9.1.0."""
    run, _ = docker
    changes = {
        "CAPTURE_CANARY_EMULATE": "cann=9.1.0,soc=a3",
        "LD_LIBRARY_PATH": str(environment.standins),
        "PATH": f"{environment.python.parent}:/usr/bin:/bin",
    }
    options = [f"--change=ENV {name}={value}" for name, value in changes.items()]
    command = [sys.executable, "-m", "capture_canary.cli"]
    options.append(f"--change=ENTRYPOINT {json.dumps(command)}")
    run("import", *options, str(root(tmp_path_factory.mktemp("root") / "root.tar")), "canary-9.1.0")
    return "canary-9.1.0"


def mounts(environment: Environment) -> list[str]:
    """What of this machine the image needs."""
    needed = {
        Path("/usr"),
        Path(sys.prefix),
        Path(sys.base_prefix),
        environment.python.resolve().parent.parent,
        environments.default_dir(),
        Path(capture_canary.__file__).parent,
        native_dir(),
    }
    outside = [path for path in needed if not path.is_relative_to("/usr") or path == Path("/usr")]
    return [f"--image-mount={path}" for path in outside]


def reproduce(socket: Path, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "capture_canary.cli", "reproduce", "--env", NAME]
    command += ["--emulate", "cann=8.5.0,soc=a3", "--rounds", str(ROUNDS)]
    command += ["--sizes", ",".join(map(str, SIZES)), "-o", str(folder / "out"), *options]
    environ = {
        "DOCKER_HOST": f"unix://{socket}",
        "CAPTURE_CANARY_LOCK_FILE": str(folder / "probe.lock"),
        "CAPTURE_CANARY_STATE_DIR": str(folder / "state"),
        "COLUMNS": "200",
    }
    return subprocess.run(
        command,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def test_another_cann_stands_beside_and_is_kept(docker, environment, image, tmp_path: Path):
    run, socket = docker
    python = f"--image-python={environment.python}"
    options = ("--compare", image, "--compare", "canary-nowhere:1", python, *mounts(environment))

    done = reproduce(socket, tmp_path, *options)

    assert 1 == done.returncode, done.stdout + done.stderr
    assert f"{image}: 100% round   3 size   1:" in done.stdout, done.stdout
    (kept,) = (tmp_path / "out").glob("image-*.json")
    report = json.loads(kept.read_bytes())["report"]
    assert ("healthy", True) == (report["verdict"], report["emulated"]), report["reason"]
    assert "9.1.0" == report["stack"]["hcomm"]["value"]
    for series in report["series"]:
        assert [{"AllReduce": K}] * ROUNDS * len(SIZES) == [
            one["collectives"] for one in series["captures"]
        ]
        assert {0} == {one["h2d_copies"] for one in series["captures"]}
    page = (tmp_path / "out" / "report.html").read_text()
    assert "The same in other images" in page
    assert "canary-nowhere:1" in page
    assert charts.ARMS["aiv"] in page
    assert "" == run("ps", "-aq", "--filter", f"label={LABEL}")

    again = reproduce(socket, tmp_path, *options)

    assert f"{image}: kept" in again.stdout
    assert "as configured: kept" in again.stdout
    assert "starting vLLM" not in again.stdout, "nothing is measured twice"
