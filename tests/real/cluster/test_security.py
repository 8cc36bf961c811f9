"""What a pod may, on the rendered output: no more than its mode needs (docs/permissions.md)."""

import json

import pytest
import yaml
from tests.real.cluster.pss import violations
from tests.real.cluster.rendering import CASES, Helm, of_kind

pytestmark = pytest.mark.real
HOST = {"host namespaces"}
ROOT = {"running as non-root", "running as non-root (user)"}
NEEDS = {
    "default": (HOST, set()),
    "restricted": (set(), set()),
    "emulated": (HOST | {"hostPath volumes"}, ROOT | {"volume types"}),
    "probe-cdi": (HOST | {"hostPath volumes"}, ROOT | {"volume types"}),
    "probe-resource": (HOST | {"hostPath volumes"}, ROOT | {"volume types"}),
    "probe-runtime": (HOST | {"hostPath volumes"}, ROOT | {"volume types"}),
    "job": (HOST, set()),
}
"""Controls of the Pod Security Standards that a pod violates: of baseline, and of restricted beyond."""


@pytest.mark.parametrize("case", NEEDS)
def test_a_pod_violates_no_more_than_its_mode_needs(helm: Helm, case: str):
    values = next(path for path in CASES if path.stem == f"{case}-values")
    objects = helm.template("--values", values)
    found = [violations(one["spec"]["template"]["spec"]) for one in of_kind(objects, "DaemonSet")]
    baseline, restricted = NEEDS[case]
    assert baseline == set().union(*(one["baseline"] for one in found))
    assert restricted == set().union(*(one["restricted"] for one in found))


@pytest.mark.parametrize("values", CASES, ids=lambda path: path.stem)
def test_nothing_is_privileged_and_no_token_is_mounted_unasked(helm: Helm, values):
    objects = helm.template("--values", values)
    for one in of_kind(objects, "DaemonSet"):
        spec = one["spec"]["template"]["spec"]
        assert '"privileged": true' not in json.dumps(spec)
        assert spec["automountServiceAccountToken"] is False
        assert spec["enableServiceLinks"] is False
        asks = "kubernetes" in {volume["name"] for volume in spec["volumes"]}
        assert asks == any(
            "serviceaccount" in json.dumps(c["volumeMounts"]) for c in spec["containers"]
        )


def test_the_jobs_pod_is_restricted(helm: Helm):
    values = next(path for path in CASES if path.stem == "job-values")
    (found,) = [
        one["data"]["job.yaml"]
        for one in of_kind(helm.template("--values", values), "ConfigMap")
        if "job.yaml" in one["data"]
    ]
    spec = yaml.safe_load(found)["spec"]["template"]["spec"]
    assert {"baseline": set(), "restricted": set()} == violations(spec)
    given = {"huawei.com/Ascend910": "2"}
    assert given.items() <= spec["containers"][0]["resources"]["limits"].items()
    assert given.items() <= spec["containers"][0]["resources"]["requests"].items()


@pytest.mark.parametrize("kind", ["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"])
def test_who_asks_nothing_may_nothing(helm: Helm, kind: str):
    assert [] == of_kind(helm.template(), kind)


def test_the_network_is_shut_but_for_scrapes(helm: Helm):
    values = next(path for path in CASES if path.stem == "restricted-values")
    (policy,) = of_kind(helm.template("--values", values), "NetworkPolicy")
    assert ["Ingress", "Egress"] == policy["spec"]["policyTypes"]
    assert [] == policy["spec"]["egress"]
    assert [{"ports": [{"port": "metrics", "protocol": "TCP"}]}] == policy["spec"]["ingress"]
    (daemon,) = of_kind(helm.template("--values", values), "DaemonSet")
    labels = daemon["spec"]["template"]["metadata"]["labels"]
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()


def test_who_asks_the_api_may_reach_it_alone(helm: Helm):
    values = next(path for path in CASES if path.stem == "job-values")
    (policy,) = of_kind(helm.template("--values", values), "NetworkPolicy")
    (egress,) = policy["spec"]["egress"]
    assert {443, 6443} == {one["port"] for one in egress["ports"]}
