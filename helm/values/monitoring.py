"""Values of what watches: monitors, rules, dashboards, network."""

from typing import Annotated

import msgspec
from helm.values.kinds import Duration, Labels, Name, Raw, Values, about


class Monitor(Values, frozen=True):
    """A monitor of the Prometheus operator."""

    enabled: Annotated[bool, about("Make it.")] = False
    interval: Annotated[Duration, about("Time between scrapes.")] = "1m"
    scrapeTimeout: Annotated[Duration, about("Time for one.")] = "10s"
    labels: Annotated[Labels, about("Labels by which the operator finds it.")] = {}
    annotations: Annotated[Labels, about("Annotations.")] = {}
    namespace: Annotated[Name, about("Namespace; none: the release's.")] = ""
    sampleLimit: Annotated[
        int, about("Samples of a scrape; a node has at most 150 series. 0: no limit.", ge=0)
    ] = 500
    labelLimit: Annotated[int, about("Labels of a sample. 0: no limit.", ge=0)] = 40
    attachNodeMetadata: Annotated[bool, about("Let relabelings see the node's labels.")] = False
    relabelings: Annotated[list[Raw], about("Further relabelings; `node` is set already.")] = []
    metricRelabelings: Annotated[list[Raw], about("Relabelings of samples.")] = []
    sidecars: Annotated[
        bool, about("Also scrape sidecars, in every namespace (PodMonitor only).")
    ] = False
    scheme: Annotated[
        str, about("https where `config.web.config_file` sets TLS.", pattern="^https?$")
    ] = "http"
    tlsConfig: Annotated[Raw, about("TLS of the scrape.")] = {}
    basicAuth: Annotated[Raw, about("Basic auth of the scrape.")] = {}


class Service(Values, frozen=True):
    """A headless Service of the pods; the ServiceMonitor needs it."""

    enabled: Annotated[bool, about("Make it; `serviceMonitor.enabled` makes it too.")] = False
    annotations: Annotated[Labels, about("Annotations.")] = {}
    labels: Annotated[Labels, about("Labels.")] = {}


class AlertOverride(Values, frozen=True):
    """What differs from the file for one alert."""

    enabled: bool = True
    forDuration: Annotated[str, about("`for`.", pattern="^([0-9]+(ms|s|m|h|d|w|y))*$")] = ""
    keepFiringFor: Annotated[
        str, about("`keep_firing_for`.", pattern="^([0-9]+(ms|s|m|h|d|w|y))*$")
    ] = ""
    labels: Labels = {}
    annotations: Labels = {}


class Rules(Values, frozen=True):
    """The PrometheusRule."""

    enabled: Annotated[bool, about("Make it.")] = False
    labels: Annotated[Labels, about("Labels by which the operator finds it.")] = {}
    annotations: Annotated[Labels, about("Annotations.")] = {}
    namespace: Annotated[Name, about("Namespace; none: the release's.")] = ""
    alertLabels: Annotated[Labels, about("Labels of every alert.")] = {}
    runbookUrl: Annotated[str, about("Where runbooks are, in place of the file's.")] = ""
    dashboardUrl: Annotated[str, about("Where Grafana is, in place of the file's.")] = ""
    emulated: Annotated[bool, about("Alert for emulated nodes, too: to try the alerts.")] = False
    keepFiringFor: Annotated[bool, about("Needs Prometheus 2.42; false leaves it out.")] = True
    alerts: Annotated[
        dict[str, AlertOverride],
        about("By alert: `enabled`, `forDuration`, `keepFiringFor`, `labels`, `annotations`."),
    ] = {}
    extraGroups: Annotated[list[Raw], about("Further groups of rules.")] = []


class Dashboards(Values, frozen=True):
    """ConfigMaps that Grafana's sidecar finds."""

    enabled: Annotated[bool, about("Make them.")] = False
    namespace: Annotated[Name, about("Namespace; none: the release's.")] = ""
    labels: Annotated[Labels, about("Labels by which Grafana's sidecar finds them.")] = (
        msgspec.field(default_factory=lambda: {"grafana_dashboard": "1"})
    )
    annotations: Annotated[Labels, about("Annotations, such as `grafana_folder`.")] = {}


class NetworkPolicy(Values, frozen=True):
    """Who may talk with the pods, and with whom they may."""

    enabled: Annotated[
        bool, about("Make it: ingress to the metrics' port only, egress none but what is on.")
    ] = False
    ingressFrom: Annotated[
        list[Raw], about("Who may scrape, as NetworkPolicy peers; none: anybody.")
    ] = []
    apiServer: Annotated[
        list[Raw],
        about(
            "The API server, as NetworkPolicy peers, for what needs it; none: port 443 and 6443 of anybody."
        ),
    ] = []
    egress: Annotated[list[Raw], about("Further egress rules, e.g. to npu-exporter.")] = []
