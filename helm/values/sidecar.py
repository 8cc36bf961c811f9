"""Values of what is added to a server's pod."""

from typing import Annotated, Literal

from helm.values.kinds import AbsolutePath, Amounts, Image, Raw, Values, about


class Gate(Values, frozen=True):
    """The init container that probes with the server's own image and NPUs before it starts."""

    enabled: Annotated[bool, about("Add it.")] = False
    image: Annotated[
        str,
        about("The server's image, as the server has it; with a digest the answer is remembered."),
    ] = ""
    resources: Annotated[Raw, about("The server's resources: its NPUs.")] = {}
    onDegraded: Annotated[
        Literal["warn", "block"],
        about("What to do when copies prove the fault; nothing else ever blocks."),
    ] = "warn"
    timeout: Annotated[
        int, about("Seconds after which the server starts whatever is known.", ge=5, le=60)
    ] = 60
    cache: Annotated[
        AbsolutePath,
        about(
            "Folder on the node that remembers answers by image digest, node and driver; none: each start probes."
        ),
    ] = ""
    env: Annotated[
        list[Raw],
        about("The server's variables, such as HCCL_OP_EXPANSION_MODE: the mode that is measured."),
    ] = []
    volumeMounts: Annotated[list[Raw], about("The server's mounts of driver and npu-smi.")] = []


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
    injector: Annotated[
        Amounts, about("Of the init container that copies the tracer: 10 MB, once.")
    ] = Amounts(requests={"cpu": "10m", "memory": "32Mi"}, limits={"memory": "64Mi"})
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

    repository: str = "capture-canary/injector"
