"""2,000 nodes in one real Prometheus: series a node, what the rules cost, how long each dashboard takes.

Every node shows the page of a real, emulated daemon that has probed. `--nodes N` takes fewer.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from monitoring.model import Pace
from tests.monitoring.linting import filled, queries
from tests.real.monitoring import many
from tests.real.monitoring.causes import Node
from tests.real.monitoring.watching import Prometheus, get, prometheus
from tests.running import until

GRAFANA = Path(__file__).parents[1] / "grafana"
INTERVAL = "15s"
SECONDS = 330
"""How long it is watched: every group has been evaluated, the slowest of them every five minutes."""
DEAREST = 4
"""Rules that are named with what they cost."""
RANGE = 120
"""Seconds that a dashboard looks back, in as many steps as a screen has."""


def page(folder: Path) -> str:
    """Return the metrics of a daemon after its first probe."""
    node = Node(folder, "one")
    node.start()
    try:
        until(lambda: node.running.verdict("degraded"))
        return get(f"http://{node.address}/metrics").decode()
    finally:
        node.end()


def timed(server: Prometheus, expr: str) -> float:
    """Return how long a query over the dashboard's time takes, s."""
    end = time.time()
    begin = time.monotonic()
    server.ask("query_range", query=expr, start=f"{end - RANGE}", end=f"{end}", step=f"{INTERVAL}")
    return time.monotonic() - begin


def dashboard(server: Prometheus, board: dict[str, Any]) -> dict[str, float]:
    """Return how long each of its queries takes, s, by the title of its panel and its place among all."""
    return {
        f"{title} ({place})": timed(server, filled(expr))
        for place, (title, expr) in enumerate(queries(board), 1)
    }


def resident_mb(server: Prometheus) -> float:
    """Return what Prometheus holds."""
    text = get(f"{server.address}/metrics").decode()
    (line,) = (one for one in text.splitlines() if one.startswith("process_resident_memory_bytes"))
    return float(line.split()[1]) / 1e6


def cost(rule: dict[str, Any]) -> float:
    """Return what a rule's last evaluation took, s."""
    return float(rule["evaluationTime"])


def report(server: Prometheus, nodes: int, samples: int) -> None:
    """Print the table."""
    watched = server.query("count(instance:capture_canary_watched:info)")
    assert [one["value"][1] for one in watched] == [str(nodes)]
    assert server.failures() == []
    recorded = int(server.query('count({__name__=~".+:capture_canary.+"})')[0]["value"][1])
    print("| what | figure |\n| --- | --- |")
    print(f"| nodes in one Prometheus, scraped and evaluated every {INTERVAL} | {nodes:,} |")
    print(f"| series that a daemon exports, after a probe | {samples} |")
    print(f"| recorded series a node | {recorded / nodes:.1f} |")
    print(f"| Prometheus' resident memory | {resident_mb(server):,.0f} MB |")
    groups = server.ask("rules")["groups"]
    for group in groups:
        print(f"| evaluation of {group['name']} | {group['evaluationTime'] * 1000:,.0f} ms |")
    rules = sorted((rule for one in groups for rule in one["rules"]), key=cost, reverse=True)
    for rule in rules[:DEAREST]:
        print(f"| of these {rule['name']} | {cost(rule) * 1000:,.0f} ms |")
    for path in sorted(GRAFANA.glob("*.json")):
        took = dashboard(server, json.loads(path.read_text()))
        slowest, median = max(took, key=lambda title: took[title]), statistics.median(took.values())
        print(
            f"| {path.stem} dashboard: slowest of {len(took)} queries, {slowest}; median "
            f"| {took[slowest] * 1000:,.0f} ms; {median * 1000:,.0f} ms |"
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=many.NODES)
    nodes = parser.parse_args().nodes
    with tempfile.TemporaryDirectory() as name, many.fleet() as fleet:
        folder = Path(name)
        os.environ["CAPTURE_CANARY_EMULATE_NODE"] = str(folder / "node")
        shown = page(folder)
        many.fill(fleet, shown, nodes=nodes)
        with prometheus(folder, fleet.scrapes, pace=Pace(), interval=INTERVAL) as server:
            time.sleep(SECONDS)
            report(server, nodes, len(many.samples(shown)))


if __name__ == "__main__":
    main()
