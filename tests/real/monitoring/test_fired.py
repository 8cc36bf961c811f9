"""Every alert for real: its cause made on an emulated A3, seen at a receiver of Alertmanager, mended, resolved."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from monitoring.alerts import ALERTS
from monitoring.model import Pace
from tests.monitoring.linting import filled, queries
from tests.real.monitoring.causes import ALL, Cause, TimeOnly
from tests.real.monitoring.watching import Hook, Prometheus, alertmanager, hook, prometheus
from tests.running import PATIENCE, until

pytestmark = pytest.mark.real
PACE = Pace(scale=1 / 1800, least=15)
"""A day takes 48 s."""
BOARDS = [
    json.loads(path.read_text()) for path in (Path(__file__).parents[3] / "grafana").glob("*.json")
]
EVERY_ALERT = tuple(alert.name for alert in ALERTS)
LONGEST = 300.0


class Fired(NamedTuple):
    """What came of it."""

    hook: Hook
    server: Prometheus
    failures: list[str]
    panels: dict[str, int]
    """Series that each query of the dashboards found while everything was wrong."""
    story: subprocess.CompletedProcess[str]
    """What is told of the degraded node then."""


def patiently(ask: Callable[[], bool]) -> None:
    end = time.monotonic() + LONGEST
    while not ask() and time.monotonic() < end:
        time.sleep(0.2)


@pytest.fixture(scope="module")
def fired(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fired]:
    folder = tmp_path_factory.mktemp("fired")
    pace = PACE
    with ExitStack() as held:
        listening = held.enter_context(hook())
        causes = [make(folder) for make in ALL]
        for cause in causes:
            held.callback(cause.node.end)
        manager = held.enter_context(alertmanager(folder, listening, pace))
        static = [
            {
                "targets": [cause.node.address],
                "labels": {"node": cause.node.name, **(cause.labels or {"pool": cause.node.name})},
            }
            for cause in causes
        ]
        scrape = {"job_name": "capture-canary", "static_configs": static}
        server = held.enter_context(prometheus(folder, [scrape], pace=pace, alertmanager=manager))
        begin(causes)
        wanted = [name for cause in causes for name in cause.alerts]
        patiently(lambda: all(listening.heard(name, "firing") for name in wanted))
        failures = server.failures()
        panels = {
            f"{board['title']}: {title}: {expr}": len(server.query(filled(expr)))
            for board in BOARDS
            for title, expr in queries(board)
        }
        command = [sys.executable, "-m", "capture_canary.cli", "story", "Degraded"]
        story = subprocess.run(
            [*command, "--prometheus", server.address], capture_output=True, check=False, text=True
        )
        mend(causes)
        patiently(lambda: all(listening.heard(name, "resolved") for name in wanted))
        yield Fired(listening, server, failures + server.failures(), panels, story)


def begin(causes: list[Cause]) -> None:
    """Let each daemon probe once while all is well, then make the causes; those by time alone within the hour."""
    for cause in causes:
        cause.node.start()
        first(cause)
    time.sleep(2 * PACE.least)  # all was well an hour ago, and is remembered
    for cause in causes:
        if not isinstance(cause, TimeOnly):
            cause.begin()
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda cause: cause.begin(), [c for c in causes if isinstance(c, TimeOnly)]))


def first(cause: Cause) -> None:
    """Let its first probe end, or be skipped."""
    daemon = cause.node.running

    def done() -> bool:
        assert daemon.process.poll() is None, daemon.log.read_text()
        skipped = any(one["event"] == "probe_skipped" for one in daemon.events())
        return skipped or (daemon.metric("probe_runs_total") or 0) > 0

    until(done, patience=4 * PATIENCE)


def mend(causes: list[Cause]) -> None:
    for cause in causes:
        cause.mend()


def test_every_alert_has_a_cause_here():
    assert {name for cause in ALL for name in cause.alerts} == set(EVERY_ALERT)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", EVERY_ALERT)
def test_it_is_heard_and_resolves(fired: Fired, name: str):
    told = [one for one in fired.hook.told if one.alert == name]
    assert ["firing", "resolved"] == list(dict.fromkeys(one.status for one in told))
    assert not [one.description for one in told if "error" in one.description.lower()]
    assert all("node" in one.description for one in told)


QUIET = {
    "annotation Stack changes",  # nothing is new for longer than five minutes here
}


def test_every_panel_has_data(fired: Fired):
    without = [query for query, found in fired.panels.items() if not found]
    assert [] == [query for query in without if query.split(": ")[1] not in QUIET]


def test_the_story_of_a_node_is_that_of_its_own_history(fired: Fired):
    assert 1 == fired.story.returncode, fired.story.stderr
    for words in ("Degraded, ", "EMULATED", "DEGRADED, aicpu_resource_list", "CANN 8.5.0"):
        assert words in fired.story.stdout


def test_no_rule_failed(fired: Fired):
    assert [] == fired.failures
