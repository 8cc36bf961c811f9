"""From /proc/PID/cgroup to the container and the pod: cgroup v1 and v2, containerd, docker, cri-o, podman."""

import re

import msgspec

MAX_BYTES = 16384
"""Read of a cgroup file: v1 has a dozen lines of a few hundred bytes."""

_CONTAINER = re.compile(r"(?:([a-z-]{1,32})-)?([0-9a-f]{64})(?:\.scope)?", re.ASCII)
_POD = re.compile(r"pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})", re.ASCII)
"""A pod's uid; systemd's driver writes `_` for `-`. A static pod's is a hash."""
_RUNTIMES = {
    "cri-containerd": "containerd",
    "containerd": "containerd",
    "nerdctl": "containerd",
    "docker": "docker",
    "crio": "cri-o",
    "libpod": "podman",
}


class Container(msgspec.Struct, frozen=True, kw_only=True):
    """Which container a process is in."""

    id: str
    """64 hexadecimal digits."""
    runtime: str | None
    """None where the path does not tell: the cgroupfs driver of containerd and docker names none."""
    pod_uid: str | None


def container_of(text: str) -> Container | None:
    """Return the innermost container that the lines of a cgroup file name; None on the host."""
    found: Container | None = None
    for line in text[:MAX_BYTES].splitlines():
        _, _, path = line.partition(":")
        candidate = _of_path(path.partition(":")[2])
        # v1: some hierarchies may not be the container's own (an agent that joined one of them).
        if candidate and (found is None or (candidate.pod_uid and not found.pod_uid)):
            found = candidate
    return found


def _of_path(path: str) -> Container | None:
    # containerd without systemd's help: `…/kubepods-burstable-podUID.slice:cri-containerd:ID`
    parts = [part for part in re.split(r"[/:]", path) if part]
    pod_uid = None
    found: tuple[str | None, str] | None = None
    for index, part in enumerate(parts):
        if pod := _POD.search(part):
            pod_uid = pod[1].replace("_", "-")
        if (match := _CONTAINER.fullmatch(part)) and match[1] != "crio-conmon":
            before = parts[index - 1] if index else ""
            found = (match[1] or (before if before in _RUNTIMES else None), match[2])
    if found is None:
        return None
    prefix, number = found
    return Container(id=number, runtime=_RUNTIMES.get(prefix or ""), pod_uid=pod_uid)
