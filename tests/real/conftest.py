"""A real Docker engine, one for the whole run: it leaves rules behind, and takes seconds to come up."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest


def need(command):
    """The path of a command; without it the test is skipped, and fails in CI."""
    found = shutil.which(command) or shutil.which(command, path="/usr/sbin:/sbin")
    if found is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"{command} is missing")
    return found


@pytest.fixture(scope="session")
def docker():
    """A Docker engine of one's own; what runs `docker`, and its socket."""
    dockerd, client = need("dockerd"), need("docker")
    if os.geteuid() != 0:
        pytest.skip("dockerd needs root")
    folder = Path(
        tempfile.mkdtemp(prefix="cc-docker-")
    )  # a socket's path is at most 107 characters
    socket = folder / "d.sock"
    command = [
        dockerd,
        "--data-root",
        folder / "root",
        "--exec-root",
        folder / "exec",
        "--pidfile",
        folder / "pid",
    ]
    command += ["-H", f"unix://{socket}", "--bridge=none", "--iptables=false", "--ip6tables=false"]
    with (folder / "log").open("wb") as log:
        engine = subprocess.Popen(command, stdout=log, stderr=log)

    def run(*args, check=True):
        done = subprocess.run(
            [client, "-H", f"unix://{socket}", *args],
            capture_output=True,
            check=False,
            timeout=120,
            text=True,
        )
        assert done.returncode == 0 or not check, f"docker {args}: {done.stderr}"
        return done.stdout.strip() if done.returncode == 0 else None

    try:
        end = time.monotonic() + 60
        while run("version", check=False) is None:
            assert engine.poll() is None, (folder / "log").read_text()[-2000:]
            assert time.monotonic() < end, (folder / "log").read_text()[-2000:]
        yield run, socket
        for container in (run("ps", "-aq", check=False) or "").split():
            run("rm", "-f", container)
    finally:
        engine.terminate()
        engine.wait(60)
        for mount in Path("/proc/mounts").read_text().splitlines():
            if str(folder) in mount:
                subprocess.run([need("umount"), "-l", mount.split()[1]], check=False)
        shutil.rmtree(folder, ignore_errors=True)
