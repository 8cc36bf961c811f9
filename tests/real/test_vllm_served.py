"""A real vLLM under `capture-canary exec`, and the daemon beside it: a verdict on the graphs of its start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.real import needing
from tests.running import Running, until

from capture_canary import emulate
from capture_canary.probe.vllm import tiny
from capture_canary.store import Store

pytestmark = pytest.mark.real

NAME = "vllm-0.23.0"
SECONDS = 400
K = 5


def test_its_start_is_judged(tmp_path: Path):
    environment = needing.environment(NAME)
    emulation = "cann=8.5.0,soc=a3"
    daemon = Running(tmp_path, "paused=true", emulate=emulation)
    (tmp_path / "traces").mkdir(exist_ok=True)
    model = tiny.write(tmp_path / "model", layers=2, ranks=2)
    variables = environment.variables(emulate.parse(emulation), os.environ)
    environ = {
        **os.environ,
        **variables,
        "CAPTURE_CANARY_TRACE_DIR": str(tmp_path / "traces"),
        "HCCL_HOST_SOCKET_PORT_RANGE": "auto",
        "HCCL_NPU_SOCKET_PORT_RANGE": "auto",
        "HF_HUB_OFFLINE": "1",
    }
    script = str(Path(__file__).with_name("vllm_server.py"))
    command = [sys.executable, "-m", "capture_canary.cli", "exec", "--", str(environment.python)]
    try:
        subprocess.run(
            [*command, script, str(model)], env=environ, check=True, timeout=SECONDS, cwd=tmp_path
        )
        sample = r'verdict\{evidence="trace",stack="\w+",verdict="degraded"\}'
        until(lambda: daemon.metric(sample) == 1)
    finally:
        daemon.end()
    store = Store(tmp_path / "state")
    judged = [one.report for one in store.probes(whole=True) if one.verdict == "degraded"]
    store.close()
    assert judged[0] is not None
    assert judged[0].matches_law
    assert {0, 1} == {one.rank for one in judged[0].series}
    assert {K} == {one.collectives for one in judged[0].series}
