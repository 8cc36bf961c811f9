"""Values of how probes get NPUs, and of the process that talks with Kubernetes."""

from typing import Annotated

from helm.values.kinds import Amounts, Labels, Name, Raw, Values, about


class Npus(Values, frozen=True):
    """How a pod in `probe` mode is given NPUs; it only ever probes on these."""

    visibleDevices: Annotated[
        str,
        about(
            "NPUs that the Ascend Docker Runtime gives it (ASCEND_VISIBLE_DEVICES), such as `0,1`: keep them from the "
            "device plugin.",
            pattern="^([0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*)?$",
        ),
    ] = ""
    runtimeClassName: Annotated[
        Name,
        about(
            "Runtime class of the Ascend Docker Runtime, such as `ascend`; none: it is the node's default."
        ),
    ] = ""
    cdiDevices: Annotated[
        list[str],
        about("NPUs as CDI devices, such as `huawei.com/npu=0`, given by the container runtime."),
    ] = []
    resource: Annotated[
        str,
        about(
            "Or ask the device plugin for NPUs, kept as long as the pod lives: its resource, such as `huawei.com/Ascend910`."
        ),
    ] = ""
    count: Annotated[int, about("How many of `resource`.", ge=2, le=64)] = 2
    group: Annotated[
        int, about("Group that owns the device nodes on the nodes (HwHiAiUser).", ge=1)
    ] = 1000
    exporter: Annotated[
        str,
        about(
            "URL of npu-exporter's metrics on the node, such as `http://$(HOST_IP):8082/metrics`: it counts processes "
            "that a container does not see.",
            pattern="^(https?://.*)?$",
        ),
    ] = ""
    assumeExclusive: Annotated[
        bool,
        about(
            "Without npu-exporter: nobody else uses these NPUs, neither on the host nor in a privileged container "
            "(docs/gate.md). True where a device plugin gives them."
        ),
    ] = False


class JobPriority(Values, frozen=True):
    """The priority class of the probe's Jobs."""

    create: Annotated[bool, about("Make a class: below every other pod, preempting none.")] = True
    name: Annotated[Name, about("Its name; none: made from the release.")] = ""
    value: Annotated[int, about("Its value.", ge=-2147483648, le=1000000000)] = -1000


class Job(Values, frozen=True):
    """`job` mode: when a probe is due, a Job asks the scheduler for NPUs on that node."""

    resource: Annotated[str, about("The device plugin's resource.")] = "huawei.com/Ascend910"
    npus: Annotated[int, about("How many.", ge=2, le=64)] = 2
    maxAtOnce: Annotated[int, about("Jobs at once in the fleet.", ge=1, le=1000)] = 4
    deadline: Annotated[
        int, about("Seconds until a Job ends, waiting for NPUs included.", ge=60, le=86400)
    ] = 600
    keep: Annotated[
        int,
        about(
            "Seconds that an ended Job is kept (TTL), where nobody has read it.", ge=60, le=604800
        ),
    ] = 3600
    priorityClass: Annotated[JobPriority, about("Its priority.")] = JobPriority()
    schedulerName: Annotated[str, about("Another scheduler, such as `volcano`.")] = ""
    runtimeClassName: Annotated[Name, about("Runtime class of its pod.")] = ""
    tolerations: Annotated[list[Raw], about("Taints of the nodes with NPUs.")] = []
    podAnnotations: Annotated[Labels, about("Annotations of its pod.")] = {}
    podLabels: Annotated[Labels, about("Labels of its pod.")] = {}
    resources: Annotated[Amounts, about("Basis: two ranks of about 1 GB each on a real CANN.")] = (
        Amounts(requests={"cpu": "1", "memory": "2Gi"}, limits={"memory": "4Gi"})
    )
    extraEnv: Annotated[list[Raw], about("Further variables.")] = []
    extraVolumes: Annotated[list[Raw], about("Further volumes.")] = []
    extraVolumeMounts: Annotated[list[Raw], about("Further mounts.")] = []


class Kubernetes(Values, frozen=True):
    """What `capture-canary k8s`, a container of its own, may do beside Jobs. All off: it does not run in other modes."""

    nodeCondition: Annotated[
        bool,
        about("Keep the condition CaptureCanaryProbeStale on the node (`patch` on nodes/status)."),
    ] = False
    events: Annotated[
        bool, about("An Event on the node when a verdict changes (`create` on events).")
    ] = False
    resources: Annotated[Amounts, about("Basis: 35 MB resident.")] = Amounts(
        requests={"cpu": "10m", "memory": "48Mi"}, limits={"memory": "128Mi"}
    )
