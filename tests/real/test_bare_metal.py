"""The examples for hosts without Kubernetes: their formats, and the Compose service on a real engine, `unmanaged`."""

import json
import os
import stat
import subprocess
import time
from pathlib import Path

import docker as sdk
import pytest
import yaml
from tests.real.conftest import need
from tests.real.test_images_compare import package
from tests.real.test_injector import made, server

from capture_canary.config import load

__all__ = ["made", "package"]  # fixtures
pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SERVICE = yaml.safe_load((DEPLOY / "docker" / "compose.yaml").read_text())["services"]["capture-canary"]  # fmt: skip
GATE = {"retry": "10s", "policy": "prefer-idle", "settle": "1s"}
HOLDS = "exec 3</dev/davinci0 && exec sleep 600"
UNIT = DEPLOY / "systemd" / "capture-canary.service"


def test_the_unit_is_valid_and_hardened(tmp_path):
    analyze = need("systemd-analyze")
    # systemd looks for the command, which is not installed here.
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/capture-canary/bin/capture-canary", "/bin/true"))
    done = subprocess.run([analyze, "verify", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    command = [analyze, "security", "--offline=true", "--threshold=30", unit]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-400:]


def test_prometheus_takes_the_example():
    command = [need("promtool"), "check", "config", DEPLOY / "prometheus" / "prometheus.yml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_examples_name_the_same_npus_and_settings():
    lines = UNIT.read_text().splitlines()
    unit = [line.split("=")[1].split()[0] for line in lines if line.startswith("DeviceAllow=")]
    assert sorted(unit) == sorted(SERVICE["devices"])
    config = load(DEPLOY / "docker" / "config.yaml", {}, {}).config
    assert (config.unmanaged, config.mode) == (True, "probe")


@pytest.fixture(scope="module")
def node(docker, tmp_path_factory):
    """A Docker host of four NPUs that its npu-smi shows idle; the engine, a server's image, and the host's files."""
    run, socket = docker
    folder = tmp_path_factory.mktemp("node")
    run("import", str(server(folder)), "canary-bare")
    smi = folder / "npu-smi"
    shown = (ROOT / "tests" / "data" / "npu-smi" / "a2-idle.txt").read_text()
    smi.write_text(f"#!/bin/sh\ncat <<'END'\n{shown}\nEND\n")
    smi.chmod(0o755)
    # The first is /dev/full, which can be held open and which nobody else has open; the others are nothing.
    for n, number in enumerate([os.makedev(1, 7), *(os.makedev(240, n) for n in (1, 2, 3))]):
        os.mknod(folder / f"davinci{n}", stat.S_IFCHR | 0o666, number)
    client = sdk.DockerClient(base_url=f"unix://{socket}", timeout=30)
    yield client, folder
    client.close()


class Daemon:
    """The Compose example's service, with this host's files in place of an Ascend host's."""

    def __init__(self, client, folder, package, state, *, npus=4, **changed):
        config = yaml.safe_load((DEPLOY / "docker" / "config.yaml").read_text())
        # Every chip is wanted, so that one that is held is one too many; the host of a test is never idle.
        config |= {"probe": {"ranks": 4, "interval": "20s", "jitter": "0s", "deadline": "5s"}}
        config |= {"gate": GATE, **changed}
        (state / "config.yaml").write_text(yaml.safe_dump(config))
        here = {
            "./config.yaml": state / "config.yaml",
            "state": state / "state",
            "/run/capture-canary": state / "run",
            "/usr/local/bin/npu-smi": folder / "npu-smi",
        }
        pairs = [volume.split(":", 1) for volume in SERVICE["volumes"]]
        binds = [f"{here[source]}:{target}" for source, target in pairs if source in here]
        self.container = client.containers.run(
            "canary-bare",
            ["run"],
            detach=True,
            entrypoint=[f"{package}/bin/capture-canary"],
            volumes=[*binds, f"{package}:{package}:ro"],
            devices=[f"{folder}/davinci{n}:/dev/davinci{n}" for n in range(npus)],
            network_mode="none",
            user=SERVICE["user"],
            cap_drop=SERVICE["cap_drop"],
            cap_add=SERVICE["cap_add"],
            security_opt=SERVICE["security_opt"],
            read_only=SERVICE["read_only"],
            pid_mode=SERVICE["pid"],
            mem_limit=SERVICE["mem_limit"],
            pids_limit=SERVICE["pids_limit"],
            tmpfs=dict(one.split(":", 1) for one in SERVICE["tmpfs"]),
        )
        self.command = f"{package}/bin/capture-canary"

    def last(self, kind):
        """The newest row of a kind in its history, once there is one."""
        give_up = time.monotonic() + 120
        while time.monotonic() < give_up:
            said = self.container.exec_run([self.command, "history", "--json"]).output.decode()
            for line in said.splitlines():
                row = json.loads(line) if line.startswith("{") else {}
                if row.get("kind") == kind:
                    return row
            self.container.reload()
            assert self.container.status == "running", self.container.logs().decode()
        raise AssertionError(f"no {kind}: {self.container.logs().decode()[-2000:]}")


@pytest.fixture
def daemon(node, package, tmp_path):
    client, folder = node
    started = []

    def start(**changed):
        for name in ("state", "run"):
            (tmp_path / name).mkdir()
        started.append(Daemon(client, folder, package, tmp_path, **changed))
        return started[-1]

    yield start
    for one in started:
        one.container.remove(force=True)


def test_where_somebody_hands_out_npus_the_others_are_not_ours(daemon):
    skip = daemon(npus=1, unmanaged=False).last("skip")
    assert (skip["reason"], "given to this container" in skip["detail"]) == ("not_ours", True)


def test_unmanaged_counts_no_npu_that_its_container_was_not_given(daemon):
    skip = daemon(npus=1).last("skip")
    assert (skip["reason"], "not davinci1, davinci2, davinci3" in skip["detail"]) == (
        "not_ours",
        True,
    )


def test_unmanaged_leaves_an_npu_that_a_container_holds_and_takes_it_once_it_is_free(daemon, node):
    client, folder = node
    holder = client.containers.run(
        "canary-bare",
        ["/bin/sh", "-c", HOLDS],
        detach=True,
        network_mode="none",
        devices=[f"{folder}/davinci0:/dev/davinci0"],
    )
    try:
        # A machine whose init shows nobody what it holds has holders that may be unseen.
        one = daemon(gate={**GATE, "assume_exclusive": True})
        skip = one.last("skip")
        assert skip["reason"] == "busy", skip
        pid = client.api.inspect_container(holder.id)["State"]["Pid"]
        assert f"davinci0: open in pid {pid}" in skip["detail"]
    finally:
        holder.remove(force=True)
    # There is no CANN in that image: the probe that is let through says so, and never healthy.
    assert one.last("probe")["verdict"] == "unknown"
