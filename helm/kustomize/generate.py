"""Writes the patches of the component from what the chart's own templates say, given helm."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

HELM = Path(__file__).parents[1]
COMPONENT = HELM / "kustomize" / "sidecar"
SERVER = "capture-canary-server"
"""Stands for the server's image; `images` of a kustomization replaces it."""
TEMPLATES = ("leaderTemplate", "workerTemplate")


def pod(helm: Path, work: Path) -> dict[str, Any]:
    """Return the pod of the example chart, without a gate, for Kubernetes before 1.29."""
    chart = work / "chart"
    (chart / "charts").mkdir(parents=True)
    for name in ("Chart.yaml", "values.yaml", "templates"):
        (chart / name).symlink_to(HELM / "examples" / "chart" / name)
    (chart / "charts" / "capture-canary").symlink_to(HELM / "capture-canary")
    without = ["--set", "capture-canary.sidecar.gate.enabled=false", "--set", f"image={SERVER}"]
    ran = subprocess.run(
        [helm, "template", "x", chart, "--kube-version", "1.20.0", *without],
        capture_output=True,
        check=True,
        text=True,
    )
    found = [one for one in yaml.safe_load_all(ran.stdout) if one and one["kind"] == "Deployment"]
    spec: dict[str, Any] = found[0]["spec"]["template"]["spec"]
    return spec


def patches(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the patches by file name."""
    server, sidecar = spec["containers"]
    mounts = [one for one in server["volumeMounts"] if one["name"].startswith("capture-canary")]
    volumes = [one for one in spec["volumes"] if one["name"].startswith("capture-canary")]
    to_server = [
        *(_add("containers/0/command/0", word) for word in reversed(server["command"][:3])),
        *(_add("containers/0/volumeMounts/-", mount) for mount in mounts),
        _add("containers/-", sidecar),
    ]
    init = spec["initContainers"]
    whole = [
        *to_server,
        _add("initContainers", init),
        *(_add("volumes/-", volume) for volume in volumes),
    ]
    return {
        "deployment-server.yaml": _below("/spec/template/spec/", to_server),
        "deployment-pod.yaml": {
            "kind": "Deployment",
            "metadata": {"name": "any"},
            "spec": {
                "template": {
                    "metadata": {"labels": {"capture-canary/sidecar": "true"}},
                    "spec": {"initContainers": init, "volumes": volumes},
                }
            },
        },
        "leader-worker-set.yaml": [
            step
            for name in TEMPLATES
            for step in [
                *_below(f"/spec/leaderWorkerTemplate/{name}/spec/", whole),
                {
                    "op": "add",
                    "path": f"/spec/leaderWorkerTemplate/{name}/metadata/labels/capture-canary~1sidecar",
                    "value": "true",
                },
            ]
        ],
    }


def _add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def _below(prefix: str, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**step, "path": prefix + step["path"]} for step in steps]


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  # kustomize reads none
        return True


def text(patch: Any) -> str:
    """Return a patch as it stands in its file."""
    head = "# Made by helm/kustomize/generate.py from the chart's templates: change it there.\n"
    return head + yaml.dump(patch, Dumper=_Plain, sort_keys=False, width=1000)


def main(helm: str, work: str) -> None:
    """Write them; given helm and an empty folder."""
    for name, patch in patches(pod(Path(helm), Path(work))).items():
        (COMPONENT / name).write_text(text(patch), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
