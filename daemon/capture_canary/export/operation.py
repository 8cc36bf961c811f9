"""Metrics of the daemon itself: whether it may probe, when it will, and whether it remembers."""

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from capture_canary.export.families import PREFIX
from capture_canary.kubernetes.exchange import Life
from capture_canary.service.board import View


class OperationCollector(Collector):
    """Asks for the view at each scrape."""

    def __init__(self, view: Callable[[], View]) -> None:
        """Export what `view` returns."""
        self._view = view

    def collect(self) -> Iterator[Metric]:
        """Yield every family."""
        view = self._view()
        yield _gauge("probing_paused", "Whether the settings pause probing.", view.paused)
        yield _gauge(
            "probing_latched",
            "Whether probing is latched off here, after a probe that left something or device errors.",
            view.latched is not None,
        )
        yield _gauge(
            "history_in_memory",
            "Whether the history cannot be written, so that a restart would lose it.",
            view.history_problem is not None,
        )
        if view.next_probe is not None:
            yield _gauge(
                "probe_next_timestamp_seconds",
                "When the next probe is due, Unix time.",
                view.next_probe,
            )

        if view.kubernetes is not None:
            yield from _kubernetes(view.kubernetes)

    def describe(self) -> list[Metric]:
        """Name nothing in advance: registering must not need a view."""
        return []


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(PREFIX + name, text, value=float(value))


def _kubernetes(life: Life) -> Iterator[Metric]:
    yield _gauge(
        "kubernetes_last_seen_timestamp_seconds",
        "Last sign of life of `capture-canary k8s`, Unix time.",
        life.at,
    )
    failures = CounterMetricFamily(
        PREFIX + "kubernetes_failures",
        "Calls of the Kubernetes API that failed.",
        labels=["feature"],
    )
    off = GaugeMetricFamily(
        PREFIX + "kubernetes_denied",
        "1 where the Kubernetes API denies what a feature needs: the feature is off.",
        labels=["feature"],
    )
    for feature, count in life.failures.items():
        failures.add_metric([feature], count)
        off.add_metric([feature], float(feature in life.off))
    yield from (failures, off)
