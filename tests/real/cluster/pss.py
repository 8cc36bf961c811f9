"""The Pod Security Standards, as far as a pod of ours could break them: which controls does a pod spec violate?

From https://kubernetes.io/docs/concepts/security/pod-security-standards; each control's own words are its key.
"""

from collections.abc import Iterator
from typing import Any

RESTRICTED_VOLUMES = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret",
}  # fmt: skip
BASELINE_CAPABILITIES = {
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
    "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
}  # fmt: skip
SELINUX_TYPES = {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}


def violations(spec: dict[str, Any], *, only: set[str] | None = None) -> dict[str, set[str]]:
    """The violated controls of `baseline` and `restricted`; `only` these containers' and none of the pod's."""
    containers = [
        one
        for one in [*spec.get("initContainers", []), *spec["containers"]]
        if only is None or one["name"] in only
    ]
    pod = spec if only is None else {}
    return {
        "baseline": set(_baseline(pod, containers)),
        "restricted": set(_restricted(pod, containers)),
    }


def _contexts(pod: dict[str, Any], containers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [pod.get("securityContext", {}), *(one.get("securityContext", {}) for one in containers)]


def _baseline(pod: dict[str, Any], containers: list[dict[str, Any]]) -> Iterator[str]:
    if pod.get("hostPID") or pod.get("hostNetwork") or pod.get("hostIPC"):
        yield "host namespaces"
    if any("hostPath" in one for one in pod.get("volumes", [])):
        yield "hostPath volumes"
    for context in _contexts(pod, containers):
        if context.get("privileged"):
            yield "privileged containers"
        if set(context.get("capabilities", {}).get("add", [])) - BASELINE_CAPABILITIES:
            yield "capabilities"
        if context.get("seLinuxOptions", {}).get("type", "") not in SELINUX_TYPES:
            yield "SELinux"
        if context.get("seccompProfile", {}).get("type") == "Unconfined":
            yield "seccomp"
        if context.get("procMount", "Default") != "Default":
            yield "/proc mount type"
    if any(port.get("hostPort") for one in containers for port in one.get("ports", [])):
        yield "host ports"


def _restricted(pod: dict[str, Any], containers: list[dict[str, Any]]) -> Iterator[str]:
    for volume in pod.get("volumes", []):
        if not set(volume) - {"name"} <= RESTRICTED_VOLUMES:
            yield "volume types"
    shared = pod.get("securityContext", {})
    for one in containers:
        context = {**shared, **one.get("securityContext", {})}
        if context.get("allowPrivilegeEscalation") is not False:
            yield "privilege escalation"
        if context.get("runAsNonRoot") is not True:
            yield "running as non-root"
        if context.get("runAsUser") == 0:
            yield "running as non-root (user)"
        if context.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"):
            yield "seccomp"
        capabilities = context.get("capabilities", {})
        if "ALL" not in capabilities.get("drop", []) or set(capabilities.get("add", [])) - {
            "NET_BIND_SERVICE"
        }:
            yield "capabilities"
