"""Reports of any content, on pages and in metrics: escaped, whole, and no better than they are."""

import functools
import math

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from capture_canary import foreign
from capture_canary.export.exposition import Exposition
from capture_canary.export.pages import explain, status
from capture_canary.export.source import Source
from capture_canary.model import Report
from capture_canary.reproduction.events import check_capture
from capture_canary.service.board import View
from capture_canary.store import Store
from tests.builders import make_report
from tests.export.showing import HOSTILE
from tests.export.test_metrics import START
from tests.export.test_pages import Page
from tests.fuzz.target import Target, scratch

NOW = 1_790_000_000.0
_FOREIGN = {"img", "iframe", "object", "embed", "form", "base"}
"""Elements that none of our pages has."""


def harmless(text: str) -> None:
    """See that a page is whole, and has no element or handler that only a foreign text can have brought."""
    for tag, attributes in Page(text).elements:
        assert tag not in _FOREIGN, tag
        assert not any(name.startswith("on") for name in attributes)
        address = attributes.get("href") or attributes.get("src") or ""
        assert not address.lower().strip().startswith(("javascript:", "data:text"))


@functools.cache
def _store() -> Store:
    return Store(scratch("pages"))


def shown(data: bytes) -> None:
    """As a probe's result comes out of a Job: its verdict is the page's and the metrics' verdict."""
    report = foreign.decode(data, Report)
    for series in report.series:
        for capture in series.captures:
            check_capture(capture)
    state = START.after(report, evidence="probe", ended=NOW, seconds=1.0, devices=2)
    view = View(state=state)
    source = Source(lambda: view, _store(), "node-7", lambda: True, lambda: True)
    text = status.page(source, now=NOW)
    harmless(text)
    assert f'<strong id="verdict">{report.verdict}</strong>' in text
    harmless(explain.page(source, now=NOW))
    body, _ = Exposition(lambda: view).scrape()
    said = {
        sample.labels["verdict"]
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
        if sample.name == "capture_canary_verdict" and math.isclose(sample.value, 1)
    }
    assert said == {report.verdict}


TARGETS = (
    Target(
        "report", "a report, on pages and in metrics", shown, json=True, raises=(ValueError,), longest=8192,
        seeds=lambda: [
            msgspec.json.encode(make_report(verdict, captures=3, ranks=1, reason=reason))
            for verdict in ("healthy", "degraded", "mitigated", "unknown")
            for reason in (None, HOSTILE)
        ],
        tokens=(b"</script>", b"<!--", b"\\u2028", b"1e308", b'"AllGather"'),
    ),
)  # fmt: skip
