"""The status page in a real browser: read by its words, seen in the dark, on a phone and without JavaScript."""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.builders import make_report
from tests.export.showing import Daemon, serving
from tests.real.browser import Browser

from capture_canary.export.server import Server
from capture_canary.model import VerdictName

pytestmark = pytest.mark.real

SCREENS = {"desk": (1200, 900), "phone": (360, 780)}
PICTURES = os.environ.get("CAPTURE_CANARY_PICTURES")
"""Where to keep the pictures, to look at them."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as one:
        yield one


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    one = Daemon(tmp_path / "state")
    yield one
    one.store.close()


@pytest.fixture
def running(daemon: Daemon) -> Iterator[Server]:
    with serving(daemon) as one:
        yield one


def fill(daemon: Daemon, verdict: VerdictName) -> None:
    now = time.time()
    daemon.probed(make_report("healthy", cann="9.1.0"), at=now - 90_000)
    daemon.store.add_skip("busy", at=now - 4000, detail="davinci0: pid 4711 python3")
    daemon.probed(make_report(verdict, captures=12), at=now - 1200)
    daemon.show(next_probe=now + 20_000)


@pytest.fixture(
    params=[(screen, light) for screen in SCREENS for light in ("light", "dark")], ids="-".join
)
def seen(request: pytest.FixtureRequest, browser: Browser) -> tuple[str, int, int]:
    """A screen, in light or dark: its name and size."""
    screen, light = request.param
    width, height = SCREENS[screen]
    browser.look(width, height, dark=light == "dark")
    return f"{screen}-{light}", width, height


@pytest.mark.parametrize("verdict", ["healthy", "mitigated", "degraded", "unknown"])
def test_the_verdict_is_read_off_the_page(browser, running, daemon, seen, verdict: VerdictName):
    fill(daemon, verdict)
    name, width, height = seen
    browser.errors.clear()
    browser.requested.clear()
    browser.open(f"http://127.0.0.1:{running.port}/")
    assert browser.run('document.getElementById("verdict").innerText') == verdict.upper()
    assert browser.run("document.documentElement.scrollWidth") == width, (
        "nothing to scroll sideways"
    )
    charts = 0 if verdict == "unknown" else 2
    assert browser.run('document.querySelectorAll("canvas").length') == charts
    place = browser.run(
        'JSON.stringify(document.getElementById("verdict").getBoundingClientRect())'
    )
    bottom = re.search(r'"bottom":([0-9.]+)', place)
    assert bottom is not None
    assert float(bottom[1]) < height / 2, "seen without scrolling"
    assert browser.errors == []
    asked = f"http://127.0.0.1:{running.port}/"
    assert {one for one in browser.requested if not one.startswith(asked)} == set()
    picture = Path(PICTURES or daemon.store.path.parent) / f"{verdict}-{name}.png"
    browser.picture(picture)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_without_javascript_the_curves_are_tables(browser, running, daemon, tmp_path):
    fill(daemon, "degraded")
    browser.look(900, 900, scripts=False)
    browser.open(f"http://127.0.0.1:{running.port}/")
    tree = browser.call("DOM.getDocument", depth=-1)
    html = browser.call("DOM.getOuterHTML", nodeId=tree["root"]["nodeId"])["outerHTML"]
    assert "<canvas" not in html
    assert re.search(r'data-chart="0"[^>]*><div class="scroll"><table', html)
    assert 'http-equiv="refresh"' in html
    browser.picture(Path(PICTURES or tmp_path) / "degraded-without-javascript.png")


def test_it_refreshes_itself_and_says_when_it_cannot(browser, running, daemon):
    fill(daemon, "degraded")
    browser.look(*SCREENS["desk"])
    browser.open(f"http://127.0.0.1:{running.port}/")
    verdict = 'document.getElementById("verdict").innerText'
    again = 'document.dispatchEvent(new Event("visibilitychange"))'
    until = "new Promise(done => {{ const look = () => {} ? done(true) : setTimeout(look, 20); look(); }})"
    browser.run("window.kept = document.querySelector('canvas')")
    browser.run(again)
    assert browser.run(until.format("document.querySelector('canvas') === kept"))
    daemon.probed(make_report("healthy", cann="9.1.0"), at=time.time())
    browser.run(again)
    assert browser.run(until.format(f'{verdict} === "HEALTHY"'))
    assert browser.run('document.querySelectorAll("canvas").length') == 2
    assert browser.run('document.getElementById("stale").hidden') is True
    running.stop()
    browser.run(again)
    assert browser.run(until.format('!document.getElementById("stale").hidden'))


def test_the_explanation(browser, running, daemon):
    fill(daemon, "degraded")
    browser.look(*SCREENS["phone"])
    browser.errors.clear()
    browser.open(f"http://127.0.0.1:{running.port}/explain")
    assert "Row 5" in browser.run("document.body.innerText")
    assert browser.run('document.querySelectorAll("canvas").length') == 8
    assert browser.run("document.documentElement.scrollWidth") == SCREENS["phone"][0]
    assert browser.errors == []
