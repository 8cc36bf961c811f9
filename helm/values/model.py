"""The chart's values: one typed model, from which values.yaml, its schema and the README's table are made."""

from typing import Annotated

import msgspec
from helm.values.kinds import Image, Labels, Mode, Name, Raw, Secret, Values, about
from helm.values.monitoring import Dashboards, Monitor, NetworkPolicy, Rules, Service
from helm.values.npus import Job, Kubernetes, Npus
from helm.values.pods import DaemonSet, Host, Variant
from helm.values.sidecar import InjectorImage, Sidecar

from capture_canary.images import matrix

SYSTEM = "ubuntu22.04"
"""Of the variants; another is named in `cell`."""


def default_variants() -> dict[str, Variant]:
    """Return a variant for each core image of the matrix that can be built."""
    return {
        f"cann-{cell.cann.lower().replace('.', '-')}-{cell.soc}": Variant(cell=cell.name)
        for cell in matrix.load()
        if cell.buildable and (cell.kind, cell.flavour, cell.system) == ("real", "core", SYSTEM)
    }


class Global(msgspec.Struct, frozen=True, kw_only=True):
    """Shared with the chart that has this one as a dependency: further keys are its own."""

    imageRegistry: Annotated[str, about("Registry of every image, for a mirror.")] = ""
    imagePullSecrets: Annotated[list[Secret], about("Pull secrets of every pod.")] = []


class ServiceAccount(Values, frozen=True):
    """The account of the pods."""

    create: Annotated[
        bool, about("Make it; its token is mounted only where something asks the API.")
    ] = True
    name: Annotated[Name, about("Its name; none: the release's.")] = ""
    annotations: Annotated[Labels, about("Annotations.")] = {}


class Rbac(Values, frozen=True):
    """Roles, for what is on."""

    create: Annotated[bool, about("Make roles and bindings.")] = True


class Web(Values, frozen=True):
    """TLS and basic auth of pages and metrics."""

    existingSecret: Annotated[
        Name,
        about(
            "Secret with `web.yaml` (exporter-toolkit's web config) and the files that it names below /etc/capture-canary/web."
        ),
    ] = ""
    tls: Annotated[
        bool, about("Whether web.yaml sets TLS: the kubelet's probes then use HTTPS.")
    ] = False


class Test(Values, frozen=True):
    """`helm test`: a probe on the emulated CANN, in the image of this release."""

    enabled: Annotated[bool, about("Make the test's pod.")] = True


class Chart(Values, frozen=True):
    """Values of the chart capture-canary."""

    enabled: Annotated[
        bool, about("For the `condition` of a chart that has this one as a dependency.")
    ] = True
    global_: Annotated[Global, about("Shared with other charts.")] = msgspec.field(
        name="global", default=Global()
    )
    nameOverride: Annotated[Name, about("In place of the chart's name.")] = ""
    fullnameOverride: Annotated[Name, about("In place of release and chart in names.")] = ""
    commonLabels: Annotated[Labels, about("Labels of every object.")] = {}
    mode: Annotated[
        Mode,
        about(
            "`observe` opens no NPU; `probe` captures on NPUs that are given to the pod; `job` asks the scheduler for "
            "NPUs for the length of a probe (docs/deployment.md)."
        ),
    ] = "observe"
    paused: Annotated[
        bool,
        about("The pause switch: no probe starts, everything else goes on; no pod is restarted."),
    ] = False
    version: Annotated[
        str, about("Version of Capture Canary in every image's tag; none: the chart's appVersion.")
    ] = ""
    image: Annotated[Image, about("The daemon's image.")] = Image()
    cell: Annotated[
        str,
        about(
            "Which image where no variant is enabled: a name of images/matrix.toml. To observe, any CANN does.",
            pattern="^[a-z0-9][a-z0-9_.-]*$",
        ),
    ] = "9.1.0-a3-ubuntu22.04"
    injector: Annotated[InjectorImage, about("The tracer's image, for sidecars and gate.")] = (
        InjectorImage()
    )
    imagePullSecrets: Annotated[list[Secret], about("Pull secrets.")] = []
    variants: Annotated[
        dict[str, Variant],
        about(
            "One DaemonSet for each CANN line that is enabled, from images/matrix.toml; none enabled: one, of `cell`, "
            "which can only observe. With several, tell their nodes apart by `nodeSelector`."
        ),
    ] = msgspec.field(default_factory=default_variants)
    config: Annotated[
        Raw,
        about(
            "Settings of the daemon (docs/configuration.md). The chart owns `mode`, `paused`, `listen`, `state_dir`, "
            "`trace_dir`, `lock_file` and `web.config_file`."
        ),
    ] = {}
    daemonSet: Annotated[DaemonSet, about("One pod a node.")] = DaemonSet()
    host: Annotated[Host, about("What the pods see of their node (docs/permissions.md).")] = Host()
    npus: Annotated[
        Npus, about("`probe` mode: how a pod is given NPUs; it only ever probes on these.")
    ] = Npus()
    job: Annotated[
        Job,
        about("`job` mode: when a probe is due, a Job asks the scheduler for NPUs on that node."),
    ] = Job()
    kubernetes: Annotated[Kubernetes, about("What `capture-canary k8s` may do beside Jobs.")] = (
        Kubernetes()
    )
    sidecar: Annotated[Sidecar, about("What `capture-canary.sidecar.*` add to a server's pod.")] = (
        Sidecar()
    )
    web: Annotated[Web, about("TLS and basic auth of pages and metrics.")] = Web()
    serviceAccount: Annotated[ServiceAccount, about("The account of the pods.")] = ServiceAccount()
    rbac: Annotated[Rbac, about("Roles, for what is on.")] = Rbac()
    service: Annotated[Service, about("A headless Service.")] = Service()
    podMonitor: Annotated[
        Monitor,
        about(
            "PodMonitor of the Prometheus operator; better than a ServiceMonitor beyond about 1,000 nodes."
        ),
    ] = Monitor()
    serviceMonitor: Annotated[Monitor, about("ServiceMonitor of the Prometheus operator.")] = (
        Monitor()
    )
    rules: Annotated[Rules, about("Recording rules and alerts (PrometheusRule).")] = Rules()
    dashboards: Annotated[Dashboards, about("Grafana dashboards (ConfigMaps).")] = Dashboards()
    networkPolicy: Annotated[NetworkPolicy, about("Who may talk with the pods.")] = NetworkPolicy()
    tests: Annotated[Test, about("`helm test`.")] = Test()
    extraManifests: Annotated[
        list[Raw | str], about("Further objects; as text they are templates.")
    ] = []
