"""`capture-canary k8s` under test, with the account that the chart gives it and no more."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from tests.real.cluster.kube import CHART, Cluster, kubeconfig
from tests.running import PATIENCE, until

SERVICE = "canary"
"""Release and namespace."""
VALUES = (
    "--set", "mode=job", "--set", "config.emulate=cann=8.5.0\\,soc=a3", "--set", "fullnameOverride=canary",
)  # fmt: skip


class Beside:
    """The process, its folder and its log."""

    def __init__(
        self, cluster: Cluster, folder: Path, node: str, *options: str, namespace: str = SERVICE
    ):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.log = folder.parent / f"k8s-{node}.log"
        config = folder.parent / f"kubeconfig-{node}"
        config.write_text(kubeconfig(cluster.url, cluster.token(namespace, "canary"), namespace))
        environ = {
            **os.environ,
            "NODE_NAME": node,
            "POD_NAME": f"pod-{node}",
            "KUBECONFIG": str(config),
        }
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "capture_canary.cli", "k8s", f"--folder={folder}", *options],
                stderr=log,
                env=environ,
            )

    def events(self, name: str | None = None) -> list[dict[str, Any]]:
        lines = [
            json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")
        ]
        return [one for one in lines if name is None or one["event"] == name]

    def file(self, name: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads((self.folder / f"{name}.json").read_text())
        except (OSError, ValueError):
            return None
        return found

    def write(self, name: str, content: dict[str, Any]) -> None:
        (self.folder / f"{name}.json").write_text(json.dumps(content))

    def answer(self, request: str) -> dict[str, Any]:
        """What came of a request."""

        def found() -> dict[str, Any] | None:
            answer = self.file("answer")
            return answer if answer and answer["id"] == request else None

        answer = until(found)
        assert answer is not None
        return answer

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


def install(cluster: Cluster, *options: str) -> None:
    """Have the release, with these options beside `job` mode."""
    cluster.helm(
        "upgrade",
        "--install",
        "canary",
        CHART,
        "-n",
        SERVICE,
        "--create-namespace",
        *VALUES,
        *options,
    )


def template(cluster: Cluster, folder: Path, **spec: Any) -> Path:
    """The Job of the release as its pods see it, with other values in its spec."""
    text = cluster.get("configmap", "canary", "-n", SERVICE)["data"]["job.yaml"]
    job = yaml.safe_load(text)
    job["spec"].update(spec)
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(job))
    return path
