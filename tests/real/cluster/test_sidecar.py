"""The sidecar: by the chart's templates, by the Kustomize component, by the post-renderer."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from helm.kustomize import generate
from tests.real.cluster import kube
from tests.real.cluster.pss import violations
from tests.real.cluster.rendering import Helm, of_kind

pytestmark = pytest.mark.real
HELM = Path(__file__).parents[3] / "helm"
EXAMPLES = HELM / "examples"
RENDERER = HELM / "post-renderer"
OURS = {"capture-canary", "capture-canary-injector"}
SERVER = "quay.io/ascend/vllm-ascend:v0.13.0-a3"
EXEC = ["/opt/capture-canary/bin/capture-canary", "exec", "--"]


@pytest.fixture
def example(tmp_path: Path) -> Path:
    chart = tmp_path / "vllm"
    shutil.copytree(EXAMPLES / "chart", chart)
    (chart / "charts").mkdir()
    (chart / "charts" / "capture-canary").symlink_to(kube.CHART)
    return chart


def pod(objects: list[dict[str, Any]]) -> dict[str, Any]:
    (deployment,) = of_kind(objects, "Deployment")
    for minor in (28, 32, 36):
        kubernetes_validate.validate(deployment, f"1.{minor}", strict=True)
    spec: dict[str, Any] = deployment["spec"]["template"]["spec"]
    return spec


def names(containers: list[dict[str, Any]]) -> list[str]:
    return [one["name"] for one in containers]


def named(spec: dict[str, Any], name: str) -> dict[str, Any]:
    return next(
        one for one in [*spec["initContainers"], *spec["containers"]] if one["name"] == name
    )


def kustomize(helm: Helm, folder: Path) -> list[dict[str, Any]]:
    ran = kube.run_client(helm.clients / "kubectl", ["kustomize", folder], home=helm.home)
    assert ran.returncode == 0, ran.stderr
    return [one for one in yaml.safe_load_all(ran.stdout) if one]


def test_an_old_cluster_gets_an_ordinary_container(helm: Helm, example: Path):
    spec = pod(helm.template(chart=example, version="1.28.9"))
    assert ["capture-canary-injector", "capture-canary-gate"] == names(spec["initContainers"])
    assert ["vllm", "capture-canary"] == names(spec["containers"])


def test_a_new_cluster_gets_a_native_sidecar(helm: Helm, example: Path):
    spec = pod(helm.template(chart=example, version="1.29.0"))
    assert ["capture-canary-injector", "capture-canary-gate", "capture-canary"] == names(
        spec["initContainers"]
    )
    assert "Always" == spec["initContainers"][-1]["restartPolicy"]
    assert ["vllm"] == names(spec["containers"])


@pytest.mark.parametrize("version", ["1.20.2", "1.36.0"])
def test_the_sidecar_holds_no_device_and_no_privilege(helm: Helm, example: Path, version: str):
    spec = pod(helm.template(chart=example, version=version))
    assert {"baseline": set(), "restricted": set()} == violations(spec, only=OURS)
    for name in OURS:
        assert "huawei.com" not in json.dumps(named(spec, name))
    volumes = [one for one in spec["volumes"] if one["name"].startswith("capture-canary")]
    assert all("emptyDir" in one for one in volumes)


def test_the_server_runs_behind_the_tracer_and_shares_its_traces(helm: Helm, example: Path):
    spec = pod(helm.template(chart=example))
    server, sidecar = named(spec, "vllm"), named(spec, "capture-canary")
    assert [*EXEC, "vllm", "serve"] == server["command"][:5]
    assert server["image"] == sidecar["image"]
    traces = {"name": "capture-canary-traces", "mountPath": "/run/capture-canary/traces"}
    assert traces in server["volumeMounts"]
    assert traces in sidecar["volumeMounts"]


def test_the_gate_has_the_servers_image_npus_and_mounts(helm: Helm, example: Path):
    spec = pod(helm.template(chart=example))
    server, gate = named(spec, "vllm"), named(spec, "capture-canary-gate")
    assert (server["image"], server["resources"]) == (gate["image"], gate["resources"])
    assert "--gate=warn" in gate["command"]
    assert {"driver", "npu-smi"} <= {one["name"] for one in gate["volumeMounts"]}


def test_the_components_patches_are_what_the_chart_says(helm: Helm, tmp_path: Path):
    made = generate.patches(generate.pod(helm.clients / "helm", tmp_path / "work"))
    for name, patch in made.items():
        text = (generate.COMPONENT / name).read_text("utf-8")
        assert generate.text(patch) == text, "run helm/kustomize/generate.py"


def test_the_component_adds_to_a_deployment(helm: Helm):
    spec = pod(kustomize(helm, EXAMPLES / "deployment"))
    server = spec["containers"][0]
    assert [*EXEC, "vllm", "serve"] == server["command"][:5]
    assert {"shm", "capture-canary", "capture-canary-traces"} == {
        one["name"] for one in server["volumeMounts"]
    }
    assert SERVER == named(spec, "capture-canary")["image"]
    assert {"baseline": set(), "restricted": set()} == violations(spec, only=OURS)


def test_the_component_adds_to_leader_and_workers(helm: Helm):
    (found,) = kustomize(helm, EXAMPLES / "leader-worker-set")
    before = yaml.safe_load((EXAMPLES / "leader-worker-set/leader-worker-set.yaml").read_text())
    for template in ("leaderTemplate", "workerTemplate"):
        old = before["spec"]["leaderWorkerTemplate"][template]["spec"]["containers"][0]
        spec = found["spec"]["leaderWorkerTemplate"][template]["spec"]
        server = spec["containers"][0]
        assert [*EXEC, *old["command"]] == server["command"]
        assert old["volumeMounts"] == server["volumeMounts"][: len(old["volumeMounts"])]
        assert ["vllm", "capture-canary"] == names(spec["containers"])
        assert SERVER == named(spec, "capture-canary")["image"]
        assert "shm" in names(spec["volumes"])


@pytest.mark.parametrize(
    ("workload", "file"),
    [
        ("Deployment/vllm", "deployment/deployment.yaml"),
        ("LeaderWorkerSet/vllm", "leader-worker-set/leader-worker-set.yaml"),
    ],
)
def test_the_post_renderer_adds_to_a_chart_that_is_not_ours(
    helm: Helm, tmp_path: Path, workload: str, file: str
):
    chart = tmp_path / "foreign"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("{apiVersion: v2, name: foreign, version: 0.1.0}")
    text = (EXAMPLES / file).read_text().replace('capture-canary/inject: "true"', "app: vllm")
    (chart / "templates/all.yaml").write_text(text)
    (chart / "templates/other.yaml").write_text(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}"
    )
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "capture-canary").symlink_to(RENDERER)
    ran = subprocess.run(
        [helm.clients / "helm", "template", "x", chart, "--post-renderer", "capture-canary"],
        capture_output=True,
        check=False,
        env={
            "PATH": f"{helm.clients}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "HELM_PLUGINS": str(plugins),
            "CAPTURE_CANARY_WORKLOAD": workload,
        },
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("/opt/capture-canary/bin/capture-canary") == 2 * ran.stdout.count(
        "name: capture-canary-injector"
    )
    assert f"image: {SERVER}" in ran.stdout
    assert "capture-canary-server" not in ran.stdout
    assert "name: other" in ran.stdout


@pytest.mark.parametrize(
    "workload", ["", "Pod/x", "Deployment/", "Deployment/$(id)", "Deployment/other"]
)
def test_the_post_renderer_says_what_is_wrong(helm: Helm, workload: str):
    ran = subprocess.run(
        [RENDERER / "capture-canary-post-renderer"],
        capture_output=True,
        check=False,
        env={"PATH": f"{helm.clients}:{os.environ['PATH']}", "CAPTURE_CANARY_WORKLOAD": workload},
        input=(EXAMPLES / "deployment/deployment.yaml").read_text(),
        text=True,
    )
    assert ran.returncode != 0
    assert not ran.stdout
    assert "capture-canary-post-renderer:" in ran.stderr


def test_a_real_api_server_takes_the_examples(cluster: kube.Cluster, helm: Helm, example: Path):
    for objects in (
        helm.template(chart=example, version="1.20.2"),
        kustomize(helm, EXAMPLES / "deployment"),
    ):
        (deployment,) = of_kind(objects, "Deployment")
        cluster.kubectl("apply", "--dry-run=server", "-f", "-", given=json.dumps(deployment))
