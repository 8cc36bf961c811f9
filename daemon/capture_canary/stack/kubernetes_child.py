"""A child process: asks the Kubernetes API for this node's pods, prints names and allowed variables as JSON.

With the pod's own service account and no library: one GET, whose answer is bounded. Only variables that the pod spec
spells out are taken; one that comes from a ConfigMap or Secret is not known, and no Secret is asked for.
"""

import http.client
import os
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import msgspec

from capture_canary import foreign
from capture_canary.stack.environ import ALLOWED
from capture_canary.stack.helpers import DEADLINE, Answer, PodOfContainer

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
MAX_ANSWER = 32 << 20


class Variable(msgspec.Struct):
    """Of a container's `env`."""

    name: str
    value: str | None = None
    valueFrom: dict[str, Any] | None = None  # noqa: N815  # Kubernetes' own spelling, here and below


class ContainerSpec(msgspec.Struct):
    """Of a pod's spec."""

    name: str
    env: list[Variable] = []


class Spec(msgspec.Struct):
    """A pod's spec."""

    containers: list[ContainerSpec] = []
    initContainers: list[ContainerSpec] = []  # noqa: N815


class ContainerStatus(msgspec.Struct):
    """Which container it became."""

    name: str
    containerID: str = ""  # noqa: N815


class Status(msgspec.Struct):
    """A pod's status."""

    containerStatuses: list[ContainerStatus] = []  # noqa: N815
    initContainerStatuses: list[ContainerStatus] = []  # noqa: N815


class Metadata(msgspec.Struct):
    """A pod's names."""

    name: str
    namespace: str = ""


class Pod(msgspec.Struct):
    """What matters of a pod."""

    metadata: Metadata
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)


class PodList(msgspec.Struct):
    """The answer."""

    items: list[Pod] = []


class _Stays(urllib.request.HTTPRedirectHandler):
    """Goes where no answer sends it: urllib would take the token along, to any host and in plain HTTP."""

    def redirect_request(self, *_args: object, **_options: object) -> None:
        """Have a redirect be the error that its code says."""


def main(argv: list[str]) -> int:
    """Args: the node's name."""
    sys.stdout.buffer.write(msgspec.json.encode(_answer(argv[0], dict(os.environ), ACCOUNT)))
    return 0


def _answer(node: str, environ: dict[str, str], account: Path) -> Answer:
    host, port = (
        environ.get("KUBERNETES_SERVICE_HOST"),
        environ.get("KUBERNETES_SERVICE_PORT", "443"),
    )
    if not host or not node:
        return Answer(error="this is no pod, or NODE_NAME is not set")
    query = urllib.parse.urlencode(
        {"fieldSelector": f"spec.nodeName={node}", "resourceVersion": "0"}
    )
    name = f"[{host}]" if ":" in host else host
    try:
        token = (account / "token").read_text("ascii").strip()
        trust = ssl.create_default_context(cafile=str(account / "ca.crt"))
        request = urllib.request.Request(  # the scheme is ours
            f"https://{name}:{port}/api/v1/pods?{query}",
            headers={"Authorization": f"Bearer {token}"},
        )
        opener = urllib.request.build_opener(_Stays, urllib.request.HTTPSHandler(context=trust))
        with opener.open(request, timeout=DEADLINE / 2) as answer:
            data = answer.read(MAX_ANSWER + 1)
        if len(data) > MAX_ANSWER:
            return Answer(error="the Kubernetes API's answer is too long")
        return Answer(containers=containers(foreign.decode(data, PodList)))
    except urllib.error.HTTPError as error:
        return Answer(error=f"the Kubernetes API: {error.code} (needs `list` on pods)")
    except OSError as error:
        return Answer(error=f"the Kubernetes API: {type(error).__name__}: {error}")
    except (
        http.client.HTTPException,
        ValueError,
    ) as error:  # may quote a token that fits no header
        return Answer(error=f"the Kubernetes API: {type(error).__name__}")


def containers(pods: PodList) -> dict[str, PodOfContainer]:
    """Return each container's pod and variables, by the container's id."""
    found = {}
    for pod in pods.items:
        specs = {one.name: one for one in [*pod.spec.initContainers, *pod.spec.containers]}
        for status in [*pod.status.initContainerStatuses, *pod.status.containerStatuses]:
            spec = specs.get(status.name)
            number = status.containerID.rpartition("://")[2]
            if spec and number:
                found[number] = PodOfContainer(
                    name=pod.metadata.name,
                    namespace=pod.metadata.namespace,
                    variables={
                        one.name: one.value or ""
                        for one in spec.env
                        if one.name in ALLOWED and one.valueFrom is None
                    },
                )
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
