"""The report as a page: complete, self-contained, and proof against what others wrote."""

import base64
import hashlib
import re
from collections.abc import Callable
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.builders import make_report, make_stack

from capture_canary.export import static
from capture_canary.model import Fact, Report
from capture_canary.report import charts, html
from capture_canary.report.page import page
from capture_canary.report.past import Past, read
from capture_canary.store import Store, files

NOW = 1_790_000_000.0
NOTHING = Past(
    probes=[], latest=None, present=[], open=[], changes=[], skips=[], stacks=[], events=[]
)
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&<!--"


class Page(HTMLParser):
    """The elements of a page with their attributes, and its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.content: list[tuple[str, str]] = []
        self.open = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.open = tag

    def handle_data(self, data: str) -> None:
        self.content.append((self.open, data))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def data(self) -> list[charts.Chart]:
        encoded = next(text for tag, text in self.content if tag == "script" and text[0] == "[")
        return msgspec.json.decode(encoded, type=list[charts.Chart])


@pytest.fixture
def past_of(tmp_path: Path) -> Callable[[Callable[[Store], None]], Past]:
    def make(fill: Callable[[Store], None]) -> Past:
        store = Store(tmp_path)
        fill(store)
        store.close()
        with closing(files.open_for_reading(tmp_path / files.NAME)) as connection:
            return read(connection, since=0.0, limit=100)

    return make


def ordinary(store: Store) -> None:
    store.add_event("start", at=NOW - 50)
    store.note_stacks({"old": make_stack("8.5.0")}, at=NOW - 49)
    store.add_probe(make_report("degraded"), at=NOW - 40, stack="old", took=1.25)
    store.add_skip("busy", at=NOW - 30, detail="pid 7")
    store.note_stacks({"new": make_stack("9.1.0")}, at=NOW - 20)
    store.add_probe(make_report("healthy", cann="9.1.0"), at=NOW - 10, stack="new")


def whole(past: Past, node: str = "node-1") -> str:
    return page(past, node=node, now=NOW, version="0.1.0")


def test_the_page_says_what_is_known(past_of: Callable[..., Past]):
    text = whole(past_of(ordinary))
    for said in (
        "node-1",
        "EMULATED",
        "degraded",
        "healthy",
        "CANN 8.5.0",
        "CANN 9.1.0",
        "busy: pid 7",
        "+256",
    ):
        assert said in text
    parsed = Page(text)
    drawn = [one["data-chart"] for one in parsed.all("div") if "data-chart" in one]
    assert drawn == [str(number) for number in range(len(parsed.data()))]
    assert [chart.title for chart in parsed.data()][:2] == [
        "H2D copies per capture",
        "Time per capture",
    ]
    assert {mark.label for mark in parsed.data()[-1].marks} == {"restart", "CANN 8.5.0 → 9.1.0"}


def test_an_empty_history_is_unknown_not_healthy(past_of: Callable[..., Past]):
    text = whole(past_of(lambda _store: None))
    assert "Nothing was judged yet" in text
    assert "healthy</span>" not in text
    assert "EMULATED" not in text


def test_nothing_is_fetched_from_anywhere(past_of: Callable[..., Past]):
    text = whole(past_of(ordinary))
    parsed = Page(text)
    fetched = ("src", "href", "srcset", "action", "data", "poster", "background")
    assert [a for _, a in parsed.elements if set(a) & set(fetched)] == []
    assert "url(" not in static.styles()
    assert "@import" not in static.styles()
    assert not any(name in static.text("charts.js") for name in ("fetch(", "XMLHttp", "import("))


def test_the_policy_allows_the_page_s_own_scripts_and_no_others(past_of: Callable[..., Past]):
    parsed = Page(whole(past_of(ordinary)))
    policy = parsed.all("meta")[1]["content"] or ""
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    run = [
        text for tag, text in parsed.content if tag == "script" and text.strip() and text[0] != "["
    ]
    allowed = re.findall(r"script-src ([^;]*)", policy)[0].split()
    digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in run]
    assert allowed == [f"'sha256-{digest}'" for digest in digests]


def hostile_report(hostile: str) -> Report:
    stack = {hostile: Fact(value=hostile, source=hostile), "cann": Fact(value=hostile, source="x")}
    report = make_report("degraded", stack=stack, reason=hostile)
    series = [
        msgspec.structs.replace(one, collective=hostile, mode=hostile) for one in report.series
    ]
    return msgspec.structs.replace(report, series=series, mode=hostile, mode_source=hostile)


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(hostile=st.one_of(st.just(HOSTILE), st.text(min_size=1, max_size=40)))
def test_hostile_text_stays_text(hostile: str, past_of: Callable[..., Past]):
    def fill(store: Store) -> None:
        report = hostile_report(hostile)
        store.note_stacks({hostile: report.stack}, at=NOW - 20)
        store.note_stacks({"a": make_stack()}, at=NOW - 19)
        store.add_probe(report, at=NOW - 10, stack=hostile)
        store.add_skip(hostile, at=NOW - 5, detail=hostile)
        store.add_event("start", at=NOW, detail=hostile)

    parsed = Page(whole(past_of(fill), node=hostile))
    plain = Page(whole(NOTHING))
    kinds = {tag for tag, _ in parsed.elements}
    known = {tag for tag, _ in plain.elements} | {"strong", "details", "summary"}
    assert kinds <= known | {"table", "thead", "tbody", "tr", "th", "td"}
    assert len(parsed.all("script")) == len(plain.all("script"))
    assert {name for _, attributes in parsed.elements for name in attributes} <= {
        *("lang", "charset", "http-equiv", "content", "name", "class", "id", "type"),
        *("data-chart", "data-height"),
    }
    assert parsed.data(), "the data of the charts can still be read"


@given(value=st.recursive(st.text() | st.floats(allow_nan=False, allow_infinity=False), st.lists))
def test_data_can_not_end_its_block(value: object):
    block = html.data("x", value)
    inner = block.removeprefix('<script type="application/json" id="x">').removesuffix("</script>")
    assert "<" not in inner
    assert msgspec.json.decode(inner) == value
