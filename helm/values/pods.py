"""Values of the DaemonSets, and of what they see of their node."""

from typing import Annotated, Literal

from helm.values.kinds import (
    AbsolutePath,
    Amounts,
    Digest,
    Labels,
    Mode,
    Name,
    Raw,
    Share,
    Values,
    about,
)


class VariantImage(Values, frozen=True):
    """Of one CANN line; what is empty comes from `image`."""

    registry: str = ""
    repository: str = ""
    tag: Annotated[str, about("Tag; none: made from `version` and `cell`.")] = ""
    digest: Digest = ""


class Variant(Values, frozen=True, omit_defaults=True):
    """A DaemonSet for the nodes of one CANN line."""

    enabled: Annotated[bool, about("Whether it is made.")] = False
    cell: Annotated[
        str,
        about("Which image: a name of images/matrix.toml.", pattern="^[a-z0-9][a-z0-9_.-]*$"),
    ] = ""
    mode: Annotated[Mode | None, about("Another mode than `mode`.")] = None
    image: Annotated[VariantImage, about("The image, where it is not that of `cell`.")] = (
        VariantImage()
    )
    nodeSelector: Annotated[
        Labels, about("Labels of its nodes, beside `daemonSet.nodeSelector`.")
    ] = {}
    config: Annotated[Raw, about("Settings that differ from `config`.")] = {}


class RollingUpdate(Values, frozen=True):
    """How fast pods are replaced."""

    maxUnavailable: Annotated[Share, about("Nodes without a canary at a time.")] = "2%"


class UpdateStrategy(Values, frozen=True):
    """How pods are replaced."""

    type: Annotated[
        Literal["RollingUpdate", "OnDelete"], about("OnDelete: as you delete them.")
    ] = "RollingUpdate"
    rollingUpdate: Annotated[RollingUpdate, about("For RollingUpdate.")] = RollingUpdate()


class FirstPool(Values, frozen=True):
    """Nodes that get an upgrade before all others."""

    nodeSelector: Annotated[
        Labels,
        about(
            "One label of the nodes that get upgrades first, as DaemonSets of their own; none: no such pool.",
            max_length=1,
        ),
    ] = {}
    version: Annotated[str, about("Version that they run; none: `version`.")] = ""


class DaemonSet(Values, frozen=True):
    """One pod a node."""

    enabled: Annotated[bool, about("False: for a chart that only takes the sidecar from here.")] = (
        True
    )
    nodeSelector: Annotated[Labels, about("Labels of the nodes, of every variant.")] = {}
    affinity: Annotated[Raw, about("Affinity of the pods.")] = {}
    tolerations: Annotated[
        list[Raw], about("Taints to run in spite of, such as `[{operator: Exists}]`.")
    ] = []
    priorityClassName: Annotated[
        Name,
        about(
            "Priority of the pods, such as `system-node-critical`; that of scheduling, not of NPUs."
        ),
    ] = ""
    updateStrategy: Annotated[UpdateStrategy, about("How pods are replaced.")] = UpdateStrategy()
    firstPool: Annotated[FirstPool, about("Nodes that get an upgrade before all others.")] = (
        FirstPool()
    )
    minReadySeconds: Annotated[
        int, about("Seconds that a new pod must be ready before the next is replaced.", ge=0)
    ] = 30
    revisionHistoryLimit: Annotated[int, about("Revisions kept for a rollback.", ge=0)] = 10
    terminationGracePeriodSeconds: Annotated[
        int, about("More than a probe takes to end and to release its NPUs.", ge=10)
    ] = 60
    resources: Annotated[
        Amounts,
        about(
            "Basis: the daemon is below 45 MB resident; a probe's two ranks take 21 MB each on the emulated CANN and about "
            "1 GB each on a real one, so give `probe` mode `limits.memory: 3Gi`. No CPU limit: a throttled canary measures "
            "its throttle."
        ),
    ] = Amounts(requests={"cpu": "20m", "memory": "64Mi"}, limits={"memory": "256Mi"})
    runtimeClassName: Annotated[
        Name,
        about(
            "Runtime class of the pods; `npus.runtimeClassName` comes before it in `probe` mode."
        ),
    ] = ""
    hostNetwork: Annotated[bool, about("Use the node's network.")] = False
    dnsPolicy: Annotated[
        Literal["", "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"],
        about("DNS of the pods."),
    ] = ""
    annotations: Annotated[Labels, about("Annotations of the DaemonSets.")] = {}
    podAnnotations: Annotated[Labels, about("Annotations of the pods.")] = {}
    podLabels: Annotated[Labels, about("Labels of the pods.")] = {}
    podSecurityContext: Annotated[
        Raw, about("Merged over the pod's security context, e.g. `seLinuxOptions`.")
    ] = {}
    securityContext: Annotated[Raw, about("Merged over the container's security context.")] = {}
    extraArgs: Annotated[list[str], about("Further arguments of `capture-canary run`.")] = []
    extraEnv: Annotated[list[Raw], about("Further variables.")] = []
    extraEnvFrom: Annotated[list[Raw], about("Further sources of variables.")] = []
    extraVolumes: Annotated[list[Raw], about("Further volumes.")] = []
    extraVolumeMounts: Annotated[list[Raw], about("Further mounts of the daemon.")] = []
    extraInitContainers: Annotated[list[Raw], about("Further init containers.")] = []
    extraContainers: Annotated[list[Raw], about("Further containers.")] = []
    startupProbe: Annotated[Raw, about("Merged over the startup probe.")] = {}
    livenessProbe: Annotated[
        Raw, about("Merged over the liveness probe: the loop's beat, never an NPU's.")
    ] = {}
    readinessProbe: Annotated[Raw, about("Merged over the readiness probe.")] = {}


class Host(Values, frozen=True):
    """What a DaemonSet's pod sees of its node. Each true or path asks for a more permissive namespace (docs/permissions.md)."""

    pid: Annotated[
        bool,
        about("See the node's processes (hostPID): without, servers in other pods are not found."),
    ] = True
    inspect: Annotated[
        bool,
        about(
            "Also read their versions and named variables: CAP_SYS_PTRACE as root, and `config.servers.inspect`."
        ),
    ] = False
    driver: Annotated[
        AbsolutePath,
        about(
            "Folder of the Ascend driver on the node, such as /usr/local/Ascend/driver, mounted read-only."
        ),
    ] = ""
    npuSmi: Annotated[
        AbsolutePath,
        about("npu-smi on the node, such as /usr/local/bin/npu-smi, mounted read-only."),
    ] = ""
    logs: Annotated[
        AbsolutePath,
        about(
            "Folder of servers' logs on the node, mounted read-only at the same path; name the files in `config.logs`."
        ),
    ] = ""
    state: Annotated[
        AbsolutePath,
        about(
            "Folder on the node for history, schedule and latches; none: they end with the pod (not in `probe` mode)."
        ),
    ] = ""
    traces: Annotated[
        AbsolutePath,
        about("Folder on the node in which servers' tracers write; none: sidecars read traces."),
    ] = ""
