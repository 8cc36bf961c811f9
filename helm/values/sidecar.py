"""Values of what is added to a server's pod."""

from typing import Annotated, Literal

from helm.values.kinds import AbsolutePath, Amounts, Image, Raw, Values, about


class Gate(Values, frozen=True):
    """The init container that probes with the server's own image and NPUs before it starts."""

    enabled: Annotated[bool, about("Add it.")] = False
    onDegraded: Annotated[
        Literal["warn", "block"],
        about("What to do when copies prove the fault; nothing else ever blocks."),
    ] = "warn"
    timeout: Annotated[
        int,
        about("Seconds after which the server starts whatever is known.", ge=5, le=60),
    ] = 60
    cache: Annotated[
        AbsolutePath,
        about(
            "Folder on the node that remembers answers by image digest, node and driver, such as "
            "/var/lib/capture-canary/gate; none: each start probes."
        ),
    ] = ""
    env: Annotated[list[Raw], about("Further variables of the gate.")] = []


class Sidecar(Values, frozen=True):
    """What `capture-canary.sidecar.*` add to a server's pod (docs/deployment.md)."""

    native: Annotated[
        Literal["auto", "always", "never"],
        about(
            "An init container that stays (`restartPolicy: Always`); auto: from Kubernetes 1.29."
        ),
    ] = "auto"
    port: Annotated[int, about("Port of its metrics.", ge=1, le=65535)] = 9877
    resources: Annotated[Amounts, about("Basis: below 45 MB resident.")] = Amounts(
        requests={"cpu": "10m", "memory": "64Mi"}, limits={"memory": "128Mi"}
    )
    injectorResources: Annotated[
        Amounts, about("Of the init container that copies the tracer: 10 MB, once.")
    ] = Amounts(requests={"cpu": "10m", "memory": "32Mi"}, limits={"memory": "64Mi"})
    pullPolicy: Annotated[
        Literal["IfNotPresent", "Always", "Never"],
        about("When to pull the server's image for sidecar and gate."),
    ] = "IfNotPresent"
    user: Annotated[int, about("User that sidecar and injector run as.", ge=1)] = 65532
    env: Annotated[
        list[Raw],
        about(
            "Further variables of the sidecar: settings, such as CAPTURE_CANARY_VERDICT__FLOOR_SECONDS."
        ),
    ] = []
    gate: Annotated[Gate, about("A probe before the server starts.")] = Gate()


class InjectorImage(Image, frozen=True):
    """The image that holds the tracer for every CANN."""

    repository: Annotated[str, about("Repository.")] = "capture-canary/injector"
