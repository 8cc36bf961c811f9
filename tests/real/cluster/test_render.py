"""The chart as helm renders it: lint, and every object against Kubernetes' own schemas."""

import json
import subprocess
import sys
from functools import cache

import kubernetes_validate
import pytest
import yaml
from tests.real.cluster.kube import CHART
from tests.real.cluster.rendering import CASES, VERSIONS, Helm, of_kind

pytestmark = pytest.mark.real
SCHEMAS = [f"1.{minor}" for minor in range(28, 37)]
OTHERS = {"monitoring.coreos.com/v1"}
"""Not Kubernetes' own: test_monitors.py looks at these."""


@cache
def validate(text: str) -> None:
    """Most objects are the same for several versions of Kubernetes: once is enough."""
    for schema in SCHEMAS:
        kubernetes_validate.validate(json.loads(text), schema, strict=True)


@pytest.mark.parametrize("values", CASES, ids=lambda path: path.stem)
def test_lint(helm: Helm, values):
    ran = helm.run("lint", "--strict", CHART, "--values", values)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("values", CASES, ids=lambda path: path.stem)
def test_objects_are_as_kubernetes_has_them(helm: Helm, values, version: str):
    objects = helm.template("--values", values, version=version)
    assert of_kind(objects, "DaemonSet")
    for one in objects:
        if one["apiVersion"] in OTHERS:
            continue
        validate(json.dumps(one, sort_keys=True))


@pytest.mark.parametrize("values", CASES, ids=lambda path: path.stem)
def test_the_jobs_are_as_kubernetes_has_them(helm: Helm, values):
    for one in of_kind(helm.template("--values", values), "ConfigMap"):
        if "job.yaml" in one.get("data", {}):
            job = yaml.safe_load(one["data"]["job.yaml"])
            job["metadata"]["name"] = job["metadata"].pop("generateName") + "0"
            validate(json.dumps(job, sort_keys=True))


@pytest.mark.parametrize("values", CASES, ids=lambda path: path.stem)
def test_names_are_unique(helm: Helm, values):
    names = [
        (one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"])
        for one in helm.template("--values", values)
    ]
    assert sorted(set(map(str, names))) == sorted(map(str, names))


@pytest.mark.parametrize("values", CASES, ids=lambda path: path.stem)
def test_the_daemon_takes_its_settings(helm: Helm, values, tmp_path):
    maps = [
        one for one in of_kind(helm.template("--values", values), "ConfigMap")
        if "config.yaml" in one.get("data", {})
    ]  # fmt: skip
    assert maps
    for one in maps:
        path = tmp_path / "config.yaml"
        path.write_text(one["data"]["config.yaml"])
        command = [sys.executable, "-m", "capture_canary.cli", "config", "check", str(path)]
        ran = subprocess.run(command, capture_output=True, check=False, text=True)
        assert ran.returncode == 0, ran.stderr
        assert yaml.safe_load(one["data"]["config.yaml"])["mode"] in ("observe", "probe", "job")


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("mode=never", "mode"),
        ("modee=observe", "modee"),
        ("config.probe.intervall=6h", "intervall"),
        ("config.probe.interval=often", "interval"),
        ("config.mode=probe", "mode"),
        ("image.digest=latest", "digest"),
        ("daemonSet.updateStrategy.rollingUpdate.maxUnavailable=some", "maxUnavailable"),
        ("npus.count=1", "count"),
        ("sidecar.gate.timeout=61", "timeout"),
        ("host.driver=relative", "driver"),
        ("mode=probe", "variants"),
        ("mode=job", "variants"),
    ],
)
def test_wrong_values_name_their_key(helm: Helm, setting: str, says: str):
    assert says in helm.refusal("--set", setting)


def test_a_probe_that_never_could_begin_is_refused(helm: Helm):
    on = ("--set", "mode=probe", "--set", "variants.cann-8-5-0-a3.enabled=true")
    assert "npus.visibleDevices" in helm.refusal(*on)
    assert "npus.exporter" in helm.refusal(*on, "--set-string", "npus.visibleDevices=0\\,1")


def test_a_first_pool_is_apart_from_the_rest(helm: Helm):
    values = next(path for path in CASES if path.stem == "everything-values")
    sets = {
        one["metadata"]["name"]: one
        for one in of_kind(helm.template("--values", values), "DaemonSet")
    }
    first, rest = sets["canary-first"], sets["canary"]
    pods = {
        name: one["spec"]["template"]["spec"] for name, one in (("first", first), ("rest", rest))
    }
    assert "first" == pods["first"]["nodeSelector"]["pool"]
    assert "pool" not in pods["rest"]["nodeSelector"]
    terms = pods["rest"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    for term in terms["nodeSelectorTerms"]:
        assert {"key": "pool", "operator": "NotIn", "values": ["first"]} in term["matchExpressions"]
        assert len(term["matchExpressions"]) == 2  # the values' own is kept
    assert ":0.1.1-" in pods["first"]["containers"][0]["image"]
    assert "@sha256:" in pods["rest"]["containers"][0]["image"]
    assert "2%" == rest["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"]
    selectors = [one["spec"]["selector"]["matchLabels"] for one in (first, rest)]
    assert selectors[0] != selectors[1]


def test_two_variants_on_the_same_nodes_are_refused(helm: Helm):
    on = "variants.cann-8-5-0-a3.enabled=true,variants.cann-9-0-0-a3.enabled=true"
    assert "nodeSelector" in helm.refusal("--set", on)


def test_the_list_of_images_has_every_image_of_ours(helm: Helm):
    listed = set((CHART.parent / "images.txt").read_text().split())
    for values in CASES:
        if values.stem == "everything-values":  # has digests and a mirror
            continue
        for one in of_kind(helm.template("--values", values), "DaemonSet"):
            for container in one["spec"]["template"]["spec"]["containers"]:
                assert container["image"] in listed
