"""A fleet in one Prometheus: the page of a real daemon, once for each node, under the node's labels."""

import http.server
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

NODES = 2000
PAGES = 10
"""Targets that the nodes are spread over: each shows the pages of its share."""


class Fleet(http.server.ThreadingHTTPServer):
    """Shows the pages; replace them while it runs."""

    def __init__(self) -> None:
        self.pages: list[bytes] = []
        super().__init__(("127.0.0.1", 0), Show)

    @property
    def scrapes(self) -> list[dict[str, object]]:
        """The configurations that scrape all pages, each node under its own labels."""
        address = {"targets": [f"127.0.0.1:{self.server_port}"]}
        return [
            {
                "job_name": f"fleet-{number}",
                "honor_labels": True,
                "metrics_path": f"/{number}",
                "static_configs": [address],
            }
            for number in range(PAGES)
        ]


class Show(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Fleet)
        body = self.server.pages[int(self.path.rpartition("/")[2])]
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Keep quiet."""


def labels(number: int) -> dict[str, str]:
    """The scrape's labels of a node; five workloads share the fleet."""
    return {
        "instance": f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}:9877",
        "node": f"worker-{number}",
        "job": "capture-canary",
        "namespace": "serving",
        "workload": f"llm-{number % 5}",
    }


def samples(page: str) -> list[str]:
    """The samples of a page, without what Prometheus' clients add for themselves."""
    return [line for line in page.splitlines() if line.startswith("capture_canary_")]


def labelled(sample: str, more: Mapping[str, str]) -> str:
    """A sample with more labels."""
    name, own, value = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", sample).groups()  # type: ignore[union-attr]
    inner = ",".join(f'{key}="{text}"' for key, text in more.items())
    return f"{name}{{{inner}{',' if own else ''}{own or ''}}} {value}"


def fill(fleet: Fleet, page: str, *, nodes: int = NODES) -> None:
    """Show this page of one daemon for every node."""
    own = samples(page)
    lines: list[list[str]] = [[] for _ in range(PAGES)]
    for number in range(nodes):
        lines[number % PAGES] += [labelled(sample, labels(number)) for sample in own]
    fleet.pages = ["\n".join(some).encode() + b"\n" for some in lines]


@contextmanager
def fleet() -> Iterator[Fleet]:
    with Fleet() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
