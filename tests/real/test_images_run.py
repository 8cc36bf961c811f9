"""Commands of ours run in images by a real Docker engine: what comes back, what cannot, what is left."""

import os
import signal
import subprocess
import sys
import time

import docker as sdk
import msgspec
import pytest
from tests.real.test_docker import base_image

from capture_canary.images.run import LABEL, Ran, RunError, answer, run

pytestmark = pytest.mark.real
LOCK = "/run/capture-canary/probe.lock"


class Said(msgspec.Struct):
    verdict: str


@pytest.fixture(scope="module")
def client(docker, tmp_path_factory):
    """The engine, with an image that has a bash."""
    command, socket = docker
    command("import", str(base_image(tmp_path_factory.mktemp("base"))), "canary-bash")
    client = sdk.DockerClient(base_url=f"unix://{socket}", timeout=30)
    yield client
    client.close()


def bash(client, script, **options):
    options = {"deadline": 60.0, "lock": LOCK, "entrypoint": ["/bin/bash", "-c"], **options}
    return run(client, "canary-bash", [script], **options)


def left(client):
    return client.api.containers(all=True, filters={"label": LABEL})


def test_an_answer_comes_back_and_nothing_is_left(client):
    ran = bash(client, 'echo \'{"verdict": "healthy"}\'; echo why >&2; exit 3')
    assert (ran.code, ran.errors) == (3, "why")
    assert answer(ran, Said) == Said("healthy")
    assert left(client) == []


def test_the_container_is_shut_in(client):
    script = (
        "[ $EUID = 0 ] && while read -r key value; do case $key in Cap*|NoNew*) echo $key $value;; esac; "
        "done </proc/self/status; (echo x >/x) 2>&1; echo x >/tmp/x && echo scratch; echo /sys/class/net/*"
    )
    said = bash(client, script).output.decode()
    assert "CapEff: 0000000000000000" in said
    assert "NoNewPrivs: 1" in said
    assert "Read-only file system" in said
    assert said.endswith("scratch\n/sys/class/net/lo\n")


def test_a_flood_ends_it(client):
    with pytest.raises(RunError, match="printed over 1000000 bytes"):
        bash(client, "while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done", limit=1_000_000)
    assert left(client) == []


def test_of_a_flood_of_errors_the_end_is_kept(client):
    ran = bash(client, "for ((n = 0; n < 20000; n++)); do echo line $n >&2; done")
    assert ran.errors == "line 19999"


def test_one_that_does_not_end_is_ended(client):
    with pytest.raises(RunError, match=r"not done in 0\.5 s"):
        bash(client, "trap '' TERM INT; exec sleep 600", deadline=0.5)
    assert left(client) == []


def test_a_missing_image_is_named(client):
    with pytest.raises(RunError, match="there is no image canary-nowhere:1 here"):
        run(client, "canary-nowhere:1", ["probe"], deadline=5, lock=LOCK)


def test_a_missing_command_is_named(client):
    with pytest.raises(RunError, match="nothing/here"):
        bash(client, "", entrypoint=["nothing/here"])
    assert left(client) == []


@pytest.mark.parametrize(
    "printed", [b"", b"no JSON", b'{"verdict": 1}', b"\xff", b"[" * 100_000, b"null"]
)
def test_what_is_no_answer_is_said(printed):
    with pytest.raises(RunError, match="exit code 0, and no answer"):
        answer(Ran(code=0, output=printed, errors=""), Said)


INTERRUPTED = """
import sys, docker
from capture_canary.images.run import run
run(docker.DockerClient(base_url=sys.argv[1]), "canary-bash", ["sleep 600"], deadline=300, lock=sys.argv[2],
    entrypoint=["/bin/bash", "-c"])
"""


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_leaves_nothing_or_the_next_one_removes_it(docker, client, end):
    _, socket = docker
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, f"unix://{socket}", LOCK], stderr=subprocess.DEVNULL
    )
    give_up = time.monotonic() + 60
    while not client.api.containers(filters={"label": LABEL}):
        assert child.poll() is None
        assert time.monotonic() < give_up
    os.kill(child.pid, end)
    child.wait(60)
    if end == signal.SIGKILL:
        assert len(left(client)) == 1
        bash(client, "exit 0", lock="/another.lock")
        assert len(left(client)) == 1
        bash(client, "exit 0")
    assert left(client) == []
