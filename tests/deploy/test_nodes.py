"""What others that act on nodes are given: node-problem-detector's plugin and ClusterD's public fault."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.running import Running, free_port, until

DEPLOY = Path(__file__).parents[2] / "deploy"
CHECK = DEPLOY / "node-problem-detector" / "capture-canary-check"


def check(source: object) -> tuple[int, str]:
    ran = subprocess.run(
        [CHECK, str(source)], capture_output=True, check=False, text=True, timeout=30
    )
    return ran.returncode, ran.stdout.strip()


def metrics(verdict: str, *, emulated: str = "false", evidence: str = "probe") -> str:
    names = ("healthy", "degraded", "mitigated", "unknown")
    lines = [
        f'capture_canary_verdict{{evidence="{evidence}",stack="a",verdict="{name}"}} {float(name == verdict)}'
        for name in names
    ]
    return "\n".join(
        [f'capture_canary_build_info{{emulated="{emulated}",version="1"}} 1.0', *lines, ""]
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (metrics("healthy"), 0),
        (metrics("mitigated"), 0),
        (metrics("degraded"), 1),
        (metrics("degraded", evidence="trace"), 1),
        (metrics("degraded", evidence="log"), 2),
        (metrics("unknown"), 2),
        (metrics("degraded", emulated="true"), 2),
        ("", 2),
        ("nonsense", 2),
    ],
)
def test_the_plugin_says_what_the_metrics_say(tmp_path: Path, text: str, code: int):
    path = tmp_path / "capture_canary.prom"
    path.write_text(text)
    found, said = check(path)
    assert code == found
    assert 0 < len(said) <= 80, "node-problem-detector cuts it"


def test_the_plugin_asks_a_real_daemon(tmp_path: Path):
    daemon = Running(tmp_path)
    try:
        until(lambda: daemon.verdict("degraded"))
        assert (2, "emulated: says nothing of this node") == check(f"127.0.0.1:{daemon.port}")
    finally:
        daemon.end()


def test_a_daemon_that_is_away_is_not_known():
    assert 2 == check(f"127.0.0.1:{free_port()}")[0]


def test_the_plugins_configuration_names_it():
    config = json.loads((CHECK.parent / "capture-canary.json").read_text())
    assert "custom" == config["plugin"]
    (rule,) = config["rules"]
    (condition,) = config["conditions"]
    assert rule["condition"] == condition["type"]
    assert CHECK.name == Path(rule["path"]).name


def test_the_public_fault_is_as_clusterd_wants_it():
    document = yaml.safe_load((DEPLOY / "clusterd/public-fault.yaml").read_text())
    assert "true" == document["metadata"]["labels"]["mc-consumer-publicfault"]
    fault = json.loads(document["data"]["PublicFault"])
    assert 8 <= len(fault["id"]) <= 128
    assert "1.0" == fault["version"]
    assert re.fullmatch(r"\d{13}", str(fault["timestamp"]))
    for one in fault["faults"]:
        assert one["faultType"] in ("NPU", "Node", "Network", "Storage")
        assert re.fullmatch(r".{9}", one["faultCode"])
        assert one["assertion"] in ("occur", "recover", "once")
        assert len(one["description"]) <= 512
        assert re.fullmatch(r"\d{13}", str(one["faultTime"]))
