"""From a degrading stack to an alert at a webhook and back, through the real Prometheus and Alertmanager."""

import http.server
import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.running import Running, free_port, until

RULE = """
groups:
  - name: capture-canary
    rules:
      - alert: CaptureCanaryDegraded
        expr: capture_canary_verdict{verdict="degraded"} == 1
        for: 1s
        labels: {severity: warning}
        annotations: {summary: Graph capture gets slower with every capture.}
"""
PROMETHEUS = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{folder}/rule.yml]
alerting: {{alertmanagers: [{{static_configs: [{{targets: ["127.0.0.1:{alertmanager}"]}}]}}]}}
scrape_configs: [{{job_name: canary, static_configs: [{{targets: ["127.0.0.1:{daemon}"]}}]}}]
"""
ALERTMANAGER = """
route: {{receiver: hook, group_wait: 1s, group_interval: 1s, repeat_interval: 1h}}
receivers: [{{name: hook, webhook_configs: [{{url: "http://127.0.0.1:{hook}/", send_resolved: true}}]}}]
"""


def need(command: str) -> str:
    found = shutil.which(command)
    if found is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"{command} is missing")
    return found


class Hook(http.server.ThreadingHTTPServer):
    """Keeps the notifications that came."""

    def __init__(self) -> None:
        self.came: list[dict[str, Any]] = []
        super().__init__(("127.0.0.1", 0), Take)

    def statuses(self) -> list[str]:
        return [alert["status"] for one in self.came for alert in one["alerts"]]


class Take(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Hook)
        self.server.came.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Keep quiet."""


@contextmanager
def component(folder: Path, *command: str) -> Iterator[None]:
    with (folder / f"{Path(command[0]).name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.real
def test_alert_fires_and_resolves(tmp_path: Path):
    prometheus, alertmanager = need("prometheus"), need("prometheus-alertmanager")
    hook = Hook()
    ports = {"prometheus": free_port(), "alertmanager": free_port()}
    config = tmp_path / "config.yaml"
    config.write_text("probe: {}\n")
    with ExitStack() as held:
        threading.Thread(target=hook.serve_forever, daemon=True).start()
        held.callback(hook.shutdown)
        daemon = Running(tmp_path, config=config)
        held.callback(daemon.end)
        (tmp_path / "rule.yml").write_text(RULE)
        (tmp_path / "prometheus.yml").write_text(
            PROMETHEUS.format(
                folder=tmp_path, alertmanager=ports["alertmanager"], daemon=daemon.port
            )
        )
        (tmp_path / "alertmanager.yml").write_text(ALERTMANAGER.format(hook=hook.server_port))
        held.enter_context(
            component(
                tmp_path,
                alertmanager,
                f"--config.file={tmp_path}/alertmanager.yml",
                f"--storage.path={tmp_path}/alertmanager",
                f"--web.listen-address=127.0.0.1:{ports['alertmanager']}",
                "--cluster.listen-address=",
            )
        )
        held.enter_context(
            component(
                tmp_path,
                prometheus,
                f"--config.file={tmp_path}/prometheus.yml",
                f"--storage.tsdb.path={tmp_path}/prometheus",
                f"--web.listen-address=127.0.0.1:{ports['prometheus']}",
            )
        )

        until(lambda: "firing" in hook.statuses())
        config.write_text("probe: {expansion_mode: AIV}\n")
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: any(event["event"] == "config_reloaded" for event in daemon.events()))
        daemon.process.send_signal(signal.SIGUSR1)

        until(lambda: "resolved" in hook.statuses())
        assert daemon.verdict("mitigated")
    hook.server_close()
