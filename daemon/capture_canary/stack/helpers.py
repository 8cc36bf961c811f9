"""Asks others for what /proc does not tell: the Kubernetes API, the Docker Engine, the kubelet.

Each is asked in a child process, so that neither their libraries nor their silence are ours, and only where the
operator opted in.
"""

import sys
from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec

from capture_canary import foreign
from capture_canary.stack import environ
from capture_canary.stack.command import Command, CommandError
from capture_canary.stack.environ import Environment
from capture_canary.stack.mode import Said
from capture_canary.stack.npus import printable
from capture_canary.stack.processes import Finder
from capture_canary.stack.servers import Pod, Server, Servers
from capture_canary.trace.header import ProcessFacts

DEADLINE = 10.0
MAX_OUTPUT = 1 << 20
MAX_CONTAINERS = 64


class PodOfDevices(msgspec.Struct):
    """A pod and the devices that the kubelet gave it."""

    namespace: str
    name: str
    devices: list[int]
    """N of each /dev/davinciN."""


class PodOfContainer(msgspec.Struct):
    """A container's pod, and what its spec says of the container's variables."""

    namespace: str
    name: str
    variables: dict[str, str]
    """What is not among them may still come from the image, a ConfigMap or a Secret."""


class Answer(msgspec.Struct):
    """What a child prints: one of the three."""

    environments: dict[str, dict[str, str]] = {}
    """Allowed variables by container id."""
    pods: list[PodOfDevices] = []
    containers: dict[str, PodOfContainer] = {}
    """By container id."""
    error: str | None = None


class Helpers:
    """Whom to ask; nobody where neither socket is named."""

    def __init__(
        self, *, docker: Path | None = None, kubelet: Path | None = None, node: str | None = None
    ) -> None:
        """Args: the sockets, and the node whose pods the Kubernetes API is asked for."""
        self._docker = docker
        self._kubelet = kubelet
        self._node = node

    def look(
        self,
        finder: Finder,
        *,
        nodes: Mapping[int, int],
        soc: str | None,
        traces: Mapping[tuple[int, int], ProcessFacts] | None = None,
    ) -> Servers:
        """Return what serves here, with what the helpers add."""
        found = finder.look(nodes=nodes, soc=soc, traces=traces)
        unseen: list[str] = []
        silent = {
            one.container.id
            for one in found.servers
            if one.mode.source == "unknown" and one.container
        }
        pods = self._containers(unseen) if self._node is not None and found.servers else {}
        told = {
            number: Said("pod", environ.of_pairs(pod.variables.items(), complete=False))
            for number, pod in pods.items()
            if number in silent and environ.MODE in pod.variables
        }
        rest = silent - told.keys()
        if rest and self._docker:
            answers = self._environments(self._docker, rest, unseen)
            told |= {number: Said("container", one) for number, one in answers.items()}
        elif rest:
            unseen.append(
                f"variables of {len(rest)} containers: the Docker Engine may be asked (servers.docker_socket)"
            )
        if told:
            found = finder.look(nodes=nodes, soc=soc, traces=traces, told=told)
        servers = _of_containers(found.servers, pods)
        if self._kubelet and servers:
            servers = _of_devices(servers, self._pods(self._kubelet, unseen))
        return msgspec.structs.replace(found, servers=servers, unseen=(*found.unseen, *unseen))

    def _containers(self, unseen: list[str]) -> dict[str, PodOfContainer]:
        answer = _ask("kubernetes_child", [self._node or ""])
        if answer.error:
            unseen.append(f"pods: {answer.error}")
        return answer.containers

    def _environments(
        self, socket: Path, ids: Collection[str], unseen: list[str]
    ) -> dict[str, Environment]:
        wanted = sorted(ids)[:MAX_CONTAINERS]
        answer = _ask("docker_child", [str(socket), *wanted])
        if answer.error:
            unseen.append(f"variables of containers: {answer.error}")
        return {
            number: environ.of_pairs(pairs.items())
            for number, pairs in answer.environments.items()
            if number in ids
        }

    def _pods(self, socket: Path, unseen: list[str]) -> dict[int, PodOfDevices]:
        answer = _ask("kubelet_child", [str(socket)])
        if answer.error:
            unseen.append(f"pods of NPUs: {answer.error}")
        return {n: pod for pod in answer.pods for n in pod.devices}


def _ask(module: str, arguments: list[str]) -> Answer:
    """Run a child and believe its answer only as far as it has the right form."""
    argv = [sys.executable, "-m", f"capture_canary.stack.{module}", *arguments]
    try:
        code, output = Command(argv, deadline=DEADLINE, limit=MAX_OUTPUT).run()
        if code == 0:
            answer = foreign.decode(output, Answer)
            # It may quote whom it asked.
            answer.error = answer.error and printable(answer.error, 200)
            return answer
    except CommandError as error:
        return Answer(error=printable(str(error), 200))
    except ValueError as error:
        return Answer(error=printable(f"its answer makes no sense ({error})", 200))
    last = output.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return Answer(error=printable(last, 200) or f"exit code {code}")


def _of_devices(
    servers: tuple[Server, ...], pods: Mapping[int, PodOfDevices]
) -> tuple[Server, ...]:
    """The servers, with the pod's name where the kubelet said whose an NPU is."""
    return tuple(
        _named(one, next((pods[n] for n in one.npus if n in pods), None), "kubelet")
        for one in servers
    )


def _of_containers(
    servers: tuple[Server, ...], pods: Mapping[str, PodOfContainer]
) -> tuple[Server, ...]:
    """The servers, with the pod's name where the Kubernetes API said whose a container is."""
    return tuple(
        _named(one, pods.get(one.container.id) if one.container else None, "Kubernetes API")
        for one in servers
    )


def _named(server: Server, pod: PodOfDevices | PodOfContainer | None, source: str) -> Server:
    if pod is None:
        return server
    found = Pod(
        uid=server.pod.uid if server.pod else None,
        name=printable(pod.name, 253),
        namespace=printable(pod.namespace, 253),
        source=source,
    )
    return msgspec.structs.replace(server, pod=found)
