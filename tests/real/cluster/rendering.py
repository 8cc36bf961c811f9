"""The chart, rendered by the real helm."""

import subprocess
from pathlib import Path
from typing import Any

import yaml
from tests.real.cluster.kube import CHART, run_client

CASES = sorted((CHART / "ci").glob("*-values.yaml"))
OPERATOR = ("monitoring.coreos.com/v1/PodMonitor", "monitoring.coreos.com/v1/ServiceMonitor",
            "monitoring.coreos.com/v1/PrometheusRule")  # fmt: skip
VERSIONS = ("1.20.2", "1.28.0", "1.29.0", "1.36.0")


class Helm:
    """helm with a home of its own."""

    def __init__(self, clients: Path, home: Path) -> None:
        self.clients, self.home = clients, home

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return run_client(self.clients / "helm", list(arguments), home=self.home)

    def template(
        self,
        *arguments: str | Path,
        chart: Path = CHART,
        version: str = "1.29.0",
        apis: tuple[str, ...] = OPERATOR,
    ) -> list[dict[str, Any]]:
        """The objects; helm must be content."""
        ran = self.run(
            "template", "canary", chart, "--namespace", "canary", "--kube-version", version,
            *(part for api in apis for part in ("--api-versions", api)), *arguments,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        return [one for one in yaml.safe_load_all(ran.stdout) if one]

    def refusal(self, *arguments: str | Path) -> str:
        """Why helm refuses."""
        ran = self.run("template", "canary", CHART, *arguments)
        assert ran.returncode != 0, "helm took it"
        return ran.stderr


def of_kind(objects: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [one for one in objects if one["kind"] == kind]
