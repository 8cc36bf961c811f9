"""Families of metrics under our prefix, their labels bounded."""

from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from capture_canary.model import Estimate

PREFIX = "capture_canary_"
MAX_REASONS = 20
"""Reasons to skip a probe that get a series of their own; the gate has fewer."""
MAX_LABEL = 64
"""Characters of a label's value that comes from files, calls or settings."""


def gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    """Return an empty gauge."""
    return GaugeMetricFamily(PREFIX + name, text, labels=labels)


def counter(name: str, text: str, *labels: str) -> CounterMetricFamily:
    """Return an empty counter."""
    return CounterMetricFamily(PREFIX + name, text, labels=labels)


def single_counter(name: str, text: str, value: float) -> Metric:
    """Return a counter without labels."""
    return CounterMetricFamily(PREFIX + name, text, value=value)


def known(name: str, text: str, value: float | None) -> Iterator[Metric]:
    """A gauge; nothing where its value is not known yet."""
    if value is not None:
        yield GaugeMetricFamily(PREFIX + name, text, value=value)


def by_reason(name: str, text: str, counts: Mapping[str, int]) -> Metric:
    """Return counts by reason, `MAX_REASONS` at the most."""
    family = counter(name, text, "reason")
    for reason, count in list(counts.items())[:MAX_REASONS]:
        family.add_metric([label(reason)], count)
    return family


def add(
    family: GaugeMetricFamily, values: list[str], estimate: Estimate | None, field: str
) -> None:
    """Add a field of an estimate, where there is one."""
    if estimate is not None:
        family.add_metric(values, getattr(estimate, field))


def label(text: str) -> str:
    """Cut the value of a label to its bound; whoever reads a page line by line sees no more lines than are ours."""
    return "".join(c if c.isprintable() else "?" for c in text[:MAX_LABEL])
