"""A real Prometheus and a real Alertmanager with the example's configuration, and a hook that hears them."""

import http.server
import json
import os
import re
import shutil
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from monitoring.alerts import ALERTS
from monitoring.model import Pace
from monitoring.render import document, text
from tests.running import free_port

EXAMPLE = Path(__file__).parents[3] / "docs" / "alertmanager.example.yml"
SUMMARIES = {alert.summary: alert.name for alert in ALERTS}


def need(command: str) -> str:
    found = shutil.which(command)
    if found is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"{command} is missing")
    return found


class Told(NamedTuple):
    """One alert in one notification."""

    receiver: str
    alert: str
    status: str
    description: str


class Hook(http.server.ThreadingHTTPServer):
    """Where all receivers end: a webhook, and enough of WeCom's interface to be sent messages."""

    def __init__(self) -> None:
        self.told: list[Told] = []
        self.notifications: list[str] = []
        """The receiver of each."""
        super().__init__(("127.0.0.1", 0), Take)

    def take_webhook(self, body: dict[str, Any]) -> None:
        self.notifications.append(body["receiver"])
        for one in body["alerts"]:
            described = one["annotations"]["description"]
            told = Told(body["receiver"], one["labels"]["alertname"], one["status"], described)
            self.told.append(told)

    def take_wecom(self, body: dict[str, Any]) -> None:
        self.notifications.append("image-owners")
        for status, rest in re.findall(
            r"\[(firing|resolved)\] (.*?)(?= \[(?:firing|resolved)\]|$)", body["text"]["content"]
        ):
            summary = next(one for one in SUMMARIES if rest.startswith(one))
            self.told.append(Told("image-owners", SUMMARIES[summary], status, rest[len(summary) :]))

    def heard(self, alert: str, status: str) -> bool:
        return any((one.alert, one.status) == (alert, status) for one in [*self.told])


class Take(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer({"errcode": 0, "access_token": "token", "expires_in": 7200})

    def do_POST(self) -> None:
        assert isinstance(self.server, Hook)
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        wecom = "message/send" in self.path
        (self.server.take_wecom if wecom else self.server.take_webhook)(body)
        self._answer({"errcode": 0})

    def _answer(self, body: object) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Keep quiet."""


def example(hook: Hook, pace: Pace) -> dict[str, Any]:
    """The example's configuration with our hook for every receiver, in quick time, whatever day it is."""
    content: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
    address = f"http://127.0.0.1:{hook.server_port}/"
    for receiver in content["receivers"]:
        for kind in receiver.get("webhook_configs", []):
            kind["url"] = address
        for kind in receiver.get("wechat_configs", []):
            kind["api_url"] = address
    for route in content["route"]["routes"]:
        route.pop("mute_time_intervals")
        for key in ("group_wait", "group_interval", "repeat_interval"):
            route[key] = pace.span(route[key])
    return content


class Prometheus:
    """A server's query interface."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"

    def ask(self, path: str, **parameters: str) -> Any:
        query = urllib.parse.urlencode(parameters)
        return json.loads(get(f"{self.address}/api/v1/{path}?{query}"))["data"]

    def query(self, expr: str) -> list[Any]:
        found: list[Any] = self.ask("query", query=expr)["result"]
        return found

    def failures(self) -> list[str]:
        """What went wrong with a rule."""
        groups = self.ask("rules")["groups"]
        return [
            f"{rule['name']}: {rule['lastError']}"
            for group in groups
            for rule in group["rules"]
            if rule.get("lastError")
        ]


@contextmanager
def hook() -> Iterator[Hook]:
    """Listen until the end."""
    with Hook() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@contextmanager
def component(folder: Path, *command: str) -> Iterator[None]:
    """Run it, and end it by its own pid."""
    with (folder / f"{Path(command[0]).name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def alertmanager(folder: Path, hook: Hook, pace: Pace) -> Iterator[int]:
    """Run Alertmanager with the example; its port."""
    config, port = folder / "alertmanager.yml", free_port()
    config.write_text(yaml.safe_dump(example(hook, pace)))
    with component(
        folder,
        need("prometheus-alertmanager"),
        f"--config.file={config}",
        f"--storage.path={folder}/alertmanager",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    ):
        yield port


@contextmanager
def prometheus(
    folder: Path,
    scrapes: Sequence[Mapping[str, object]],
    *,
    pace: Pace,
    alertmanager: int | None = None,
    interval: str = "500ms",
) -> Iterator[Prometheus]:
    """Run Prometheus with our rules, emulated nodes asked for, on what these configurations scrape."""
    (folder / "rules.yml").write_text(text(document(pace=pace, with_emulated=True)))
    content: dict[str, Any] = {
        "global": {
            "scrape_interval": interval,
            "scrape_timeout": interval,
            "evaluation_interval": interval,
        },
        "rule_files": [str(folder / "rules.yml")],
        "scrape_configs": list(scrapes),
    }
    if alertmanager:
        static = [{"targets": [f"127.0.0.1:{alertmanager}"]}]
        content["alerting"] = {"alertmanagers": [{"static_configs": static}]}
    config, port = folder / "prometheus.yml", free_port()
    config.write_text(yaml.safe_dump(content))
    with component(
        folder,
        need("prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={folder}/prometheus",
        f"--web.listen-address=127.0.0.1:{port}",
    ):
        server = Prometheus(port)
        _wait_ready(server)
        yield server


def _wait_ready(server: Prometheus) -> None:
    end = time.monotonic() + 60
    while True:
        try:
            get(f"{server.address}/-/ready")
        except OSError:
            assert time.monotonic() < end, "Prometheus does not start"
            time.sleep(0.1)
        else:
            return


def get(address: str) -> bytes:
    """Return a page of a server of ours."""
    with urllib.request.urlopen(address, timeout=60) as page:  # noqa: S310 - an address of this file's own
        body: bytes = page.read()
        return body
