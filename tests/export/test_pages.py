"""The pages: what an operator must see is there, nothing foreign runs, nothing comes from outside."""

import re
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest
from tests.builders import make_report, make_stack
from tests.export.showing import HOSTILE, NOW, get
from tests.service.test_servers import look

from capture_canary.export import static
from capture_canary.export.pages import explain, status
from capture_canary.gate.decide import decide
from capture_canary.gate.model import Rules, Snapshot
from capture_canary.model import Fact, Growth, Judgement, Report, VerdictName

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """A page's text and elements; fails where an element is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in {"script", "style"}:
            self.text += data


def hostile(report: Report, text: str = HOSTILE) -> Report:
    """The same with every text that comes from elsewhere replaced."""
    stack = {name: Fact(value=text, source=text) for name in report.stack}
    series = [msgspec.structs.replace(one, mode=text, collective=text) for one in report.series]
    return msgspec.structs.replace(
        report, reason=text, mode=text, mode_source=text, stack=stack, series=series
    )


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ("healthy", "Capturing a graph gets no slower"),
        ("mitigated", "the mode in force prevents it"),
        ("degraded", "Capturing a graph gets slower"),
        ("unknown", "Nothing can be said"),
    ],
)
def test_the_verdict_is_a_word_and_a_sign_not_a_colour_alone(daemon, verdict: VerdictName, words):
    daemon.probed(make_report(verdict))
    text = status.page(daemon.source, now=NOW)
    assert f'<strong id="verdict">{verdict}</strong>' in text
    assert f">{status.SIGNS[verdict]}</span>" in text
    assert words in Page(text).text


def test_the_page_says_for_whom_why_and_what_to_do(daemon):
    daemon.probed(make_report("degraded", stack=make_stack("8.5.0")))
    text = Page(status.page(daemon.source, now=NOW)).text
    for wanted in (
        "servers with CANN 8.5.0, SoC a3, driver 25.5.0 in mode AI_CPU (default of the SoC), by probe",
        "Each further capture makes 256 H2D copies more; with AIV it makes none more.",
        "+256 H2D copies each capture",
        "met law of the growth",
        "Move to CANN 9.1.0 or later",
        "Whoever builds the serving image",
        "for 100 s, since",
    ):
        assert wanted in text


def test_both_curves_are_there_without_javascript(daemon):
    daemon.probed(make_report("degraded"))
    text = Page(status.page(daemon.source, now=NOW)).text
    assert "H2D copies per capture" in text
    assert "Time per capture (ms)" in text
    assert "1,256" in text


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"latched": "device errors; delete a file"}, "latched off on this node: device errors"),
        ({"paused": True}, "Paused: no probe begins"),
        ({"history_problem": "disk full"}, "only in memory, and lost at a restart: disk full"),
    ],
)
def test_what_must_not_be_overlooked_is_a_banner(daemon, fields: dict[str, Any], words):
    assert words not in status.page(daemon.source, now=NOW)
    daemon.show(**fields)
    for page in (status.page, explain.page):
        assert re.search(rf'<p class="banner [a-z]+">[^<]*{words}', page(daemon.source, now=NOW))


def test_a_bad_settings_file_is_a_banner(daemon):
    daemon.state(daemon.view.state.with_config(ok=False))
    assert "settings file cannot be used" in status.page(daemon.source, now=NOW)


def test_emulated_is_unmistakable_and_real_is_not_called_so(daemon):
    text = status.page(daemon.source, now=NOW)
    assert "<title>EMULATED unknown: node-7</title>" in text
    assert "EMULATED: no word of this is about real hardware." in text
    daemon.state(msgspec.structs.replace(daemon.view.state, emulated=False))
    real = status.page(daemon.source, now=NOW)
    assert "EMULATED" not in real
    assert "no NPU is opened" in real


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "none is planned"),
        ({"next_probe": NOW + 7200}, "in 2 h"),
        ({"next_probe": NOW - 1}, "due now"),
        ({"next_probe": NOW - 1, "running_since": NOW - 3}, "running now, for 3 s"),
    ],
)
def test_the_next_probe(daemon, fields, words):
    daemon.show(**fields)
    assert f"Next probe {words}" in Page(status.page(daemon.source, now=NOW)).text


def test_skips_and_logs_are_shown_with_their_reasons(daemon):
    daemon.store.add_skip("busy", at=NOW - 60, detail="davinci0: pid 7 python")
    nothing = Growth(copies=None, seconds=None, series=None)
    found = Judgement(
        verdict="unknown",
        cause="suspect",
        reason="bars rise",
        impact=None,
        matches_law=None,
        growth=nothing,
    )
    daemon.show(logs={"/var/log/vllm.log": found})
    text = Page(status.page(daemon.source, now=NOW)).text
    for wanted in ("busy", "davinci0: pid 7 python", "/var/log/vllm.log", "bars rise"):
        assert wanted in text


def test_the_explanation_has_every_question_with_its_answer(daemon):
    daemon.probed(make_report("degraded"))
    daemon.show(decision=decide(Rules(), Snapshot(paused="by hand")), decided_at=NOW - 60)
    text = Page(explain.page(daemon.source, now=NOW)).text
    for wanted in (
        "Row 4: copies grow with an hcomm",
        "not asked",
        "by hand",
        "+256",
        "AllGather, kept",
    ):
        assert wanted in text


@pytest.mark.parametrize("verdict", ["healthy", "degraded", "unknown"])
@pytest.mark.parametrize("page", [status.page, explain.page])
def test_what_others_wrote_is_text(daemon, page, verdict: VerdictName):
    daemon.probed(hostile(make_report(verdict)))
    daemon.store.add_skip(HOSTILE, at=NOW, detail=HOSTILE)
    daemon.show(
        decision=decide(Rules(), Snapshot(paused=HOSTILE)),
        decided_at=NOW,
        latched=HOSTILE,
        history_problem=HOSTILE,
    )
    source = daemon.source._replace(node=HOSTILE)
    found = Page(page(source, now=NOW))
    assert {tag for tag, _ in found.elements}.isdisjoint({"img", "style", "iframe", "form"})
    for tag, attributes in found.elements:
        assert not {name for name in attributes if name.startswith("on") or name == "style"}
        if tag == "script":
            data = attributes.get("type") == "application/json"
            assert data or str(attributes["src"]).startswith("static/")


@pytest.mark.parametrize("path", ["/", "/explain"])
def test_nothing_comes_from_outside_and_nothing_inline_runs(running, daemon, path):
    daemon.probed(make_report("degraded"))
    answer = get(running, path)
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'; style-src 'self'" in policy
    assert "unsafe" not in policy
    assert "://" not in answer.body
    for name in re.findall(r'(?:src|href)="(static/[^"]+)"', answer.body):
        assert get(running, f"/{name}").status == 200


@pytest.mark.parametrize("name", static.FILES)
def test_files_are_kept_by_the_browser_until_they_change(running, name):
    answer = get(running, f"/static/{name}?v={static.version()}")
    assert answer.headers["content-type"].split(";")[0] == static.FILES[name]
    assert "immutable" in answer.headers["cache-control"]
    assert get(running, f"/static/{name}?v=old").headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    ("about", "words", "loud"),
    [
        (True, "What our probes find holds for them.", False),
        (False, "what our probes find says nothing of them", True),
        (None, "is not known", False),
    ],
)
def test_the_servers_here_and_whether_our_probes_are_about_them(
    daemon, tmp_path, about, words, loud
):
    found = look(tmp_path, {"environ": {"HCCL_OP_EXPANSION_MODE": "AIV"}}, {})
    daemon.state(msgspec.structs.replace(daemon.view.state, servers=found, about_servers=about))
    page = status.page(daemon.source, now=NOW)
    text = Page(page).text
    for wanted in (words, "AIV (environment)", "AI_CPU (default)", "mitigated", "will degrade"):
        assert wanted in text
    assert ('banner alarm">The servers here run another hcomm' in page) is loud
