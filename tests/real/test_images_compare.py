"""Images compared by a real engine: servers' own images, of two CANNs, with what the injector copied."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from tests.real.test_injector import made, server

from capture_canary.images.run import LABEL
from capture_canary.lock import acquire

__all__ = ["made"]  # the payload, a fixture
pytestmark = pytest.mark.real
CANNS = ("9.0.0", "9.1.0")


@pytest.fixture(scope="module")
def images(docker, tmp_path_factory):
    """Their tags by CANN; `wrong` says 9.1.0 and has 9.0.0, `broken` has a Python that does not run."""
    run, _ = docker
    folder = tmp_path_factory.mktemp("servers")
    run("import", str(server(folder)), "canary-served")
    tags = {}
    for name, cann in {
        **{cann: cann for cann in CANNS},
        "wrong": "9.0.0",
        "broken": "9.1.0",
    }.items():
        lines = [
            "FROM canary-served",
            f"ENV CAPTURE_CANARY_EMULATE=cann={cann},soc=a3",
            f"LABEL io.capture-canary.cann={'9.1.0' if name == 'wrong' else cann}",
            "LABEL io.capture-canary.soc=a3 io.capture-canary.kind=emulated",
            "USER 1000:1000",
        ]
        if name == "broken":
            lines.append("ENV CAPTURE_CANARY_PYTHON=/bin/sh")
        context = folder / name
        context.mkdir()
        (context / "Dockerfile").write_text("\n".join(lines))
        tags[name] = f"canary-served:{name}"
        run("build", "-q", "-t", tags[name], str(context))
    return tags


@pytest.fixture(scope="module")
def package(made, tmp_path_factory):
    """A folder that the injector's script filled."""
    folder = tmp_path_factory.mktemp("package")
    environ = {**os.environ, "CAPTURE_CANARY_PAYLOAD": str(made / "payload")}
    subprocess.run([made / "inject", folder], check=True, env=environ)
    folder.chmod(0o755)
    for parent in folder.parents:
        if parent.stat().st_mode & 0o005 != 0o005:
            parent.chmod(parent.stat().st_mode | 0o005)
    return folder


class Compare:
    def __init__(self, socket, package, folder):
        self.environ = {**os.environ, "DOCKER_HOST": f"unix://{socket}"}
        settings = {"state_dir": folder / "state", "lock_file": folder / "lock", "paused": "false"}
        self.words = [sys.executable, "-m", "capture_canary.cli", "images", "compare"]
        self.words += ["--package", package, "--emulate", "cann=9.1.0,soc=a3"]
        self.words += [
            word for key, value in settings.items() for word in ("--set", f"{key}={value}")
        ]

    def __call__(self, *words):
        done = subprocess.run(
            [*self.words, *words], env=self.environ, capture_output=True, text=True, check=False, timeout=300
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def compare(docker, package, tmp_path):
    return Compare(docker[1], package, tmp_path)


def rows(said):
    return {
        (one["labels"]["cann"], row["arm"]): (row["verdict"], row["copies"]["estimate"], row["matches_law"])
        for one in said["images"]
        for row in one["rows"]
    }  # fmt: skip


def test_images_that_have_nothing_of_ours_are_compared(compare, images, tmp_path):
    report = tmp_path / "report.html"
    code, said, errors = compare(*(images[cann] for cann in CANNS), "--json", "--html", str(report))
    assert (code, errors) == (1, "")
    found = rows(json.loads(said))
    verdict, copies, law = found["9.0.0", "as_configured"]
    assert (verdict, copies > 0, law) == ("degraded", True, True)
    assert found["9.0.0", "aiv"] == ("mitigated", 0, None)
    assert [found["9.1.0", arm] for arm in ("as_configured", "aiv")] == [("healthy", 0, None)] * 2
    page = report.read_text()
    assert "EMULATED: this says nothing of any real NPU." in page
    assert all(images[cann] in page for cann in CANNS)


def test_one_that_fails_is_said_and_the_others_go_on(compare, images):
    code, said, errors = compare("nowhere:1", images["broken"], images["9.1.0"])
    assert code == 3
    assert "nowhere:1: there is no such image here: pull or build it" in errors
    assert f"{images['broken']}: exit code 2, and no answer" in errors
    assert "CAPTURE_CANARY_PYTHON=/bin/sh is none of" in errors
    assert said.count("healthy") == 2


def test_a_label_that_is_not_true_is_said(compare, images):
    code, said, errors = compare(images["wrong"])
    assert (code, "its label says CANN 9.1.0, in it is 9.0.0" in errors) == (3, True)
    assert "degraded" in said


def test_a_gate_that_refuses_is_said_and_nothing_starts(compare, images):
    code, said, errors = compare(images["9.1.0"], "--set", "paused=true")
    assert (code, "No probe now (paused)" in errors) == (3, True)
    assert "unknown" in said


def test_a_node_that_is_probed_is_left_alone(compare, images, tmp_path):
    lock = acquire(tmp_path / "lock")
    code, _, errors = compare(images["9.1.0"])
    lock.release()
    assert (code, "a probe on this node holds" in errors) == (3, True)


def test_ctrl_c_leaves_nothing(docker, compare, images):
    run, _ = docker
    words = [*compare.words, images["9.0.0"], "--budget", "300"]
    environ = {**compare.environ}
    with subprocess.Popen(
        words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as one:
        give_up = time.monotonic() + 60
        while not run("ps", "-q", "--filter", f"label={LABEL}"):
            assert one.poll() is None
            assert time.monotonic() < give_up
        one.send_signal(signal.SIGINT)
        one.communicate(timeout=60)
    assert one.returncode == 128 + signal.SIGINT
    assert run("ps", "-aq", "--filter", f"label={LABEL}") == ""
