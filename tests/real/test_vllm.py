"""The real vLLM with vllm-ascend over two emulated NPUs: `probe --workload vllm`."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.real import needing

pytestmark = pytest.mark.real

NAME = "vllm-0.23.0"
SECONDS = 900
K = 5
"""All-reduces in a graph of two layers over two ranks."""
ROUNDS, SIZES = 3, 4


@pytest.fixture(scope="module", autouse=True)
def _environment():
    needing.environment(NAME)


def probe(emulation: str, *options: str, **environ: str) -> dict[str, Any]:
    """Run the command; return the report that it prints."""
    command = [sys.executable, "-m", "capture_canary.cli", "probe", "--workload", "vllm", "--json"]
    options = ("--env", NAME, "--emulate", emulation, "--rounds", str(ROUNDS), *options)
    done = subprocess.run(
        [*command, *options],
        env={**os.environ, **environ},
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.stdout, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_8_5_is_degraded_by_the_law_and_aiv_mitigates():
    report = probe("cann=8.5.0,soc=a3")

    assert ("degraded", "aicpu_resource_list", True) == (
        report["verdict"],
        report["cause"],
        report["matches_law"],
    ), report["reason"]
    assert report["control"] > 0
    assert {"vllm", "vllm_ascend", "torch_npu"} <= report["stack"].keys()
    assert {("as_configured", 0), ("as_configured", 1), ("aiv", 0), ("aiv", 1)} == {
        (one["arm"], one["rank"]) for one in report["series"]
    }
    for series in report["series"]:
        captures = series["captures"]
        assert ROUNDS * SIZES == len(captures)
        assert {1, 2, 4, 8} == {one["shape"] for one in captures}
        assert [{"AllReduce": K}] * len(captures) == [one["collectives"] for one in captures]
        steps = {b["h2d_copies"] - a["h2d_copies"] for a, b in itertools.pairwise(captures)}
        assert steps == ({K * K} if series["arm"] == "as_configured" else {0})


def test_9_1_is_healthy():
    report = probe("cann=9.1.0,soc=a3")

    assert ("healthy", None) == (report["verdict"], report["cause"]), report["reason"]


def test_out_of_streams_is_unknown_and_leaves_nothing():
    fault = "fail:aclmdlRICaptureBegin:3:207008"
    report = probe("cann=8.5.0,soc=a3", "--budget", "300", CAPTURE_CANARY_EMULATE_FAULT=fault)

    assert "unknown" == report["verdict"]
    assert report["reason"]


def test_reproduction_is_a_straight_line_with_the_slope_of_the_law(tmp_path: Path):
    command = [sys.executable, "-m", "capture_canary.cli", "reproduce", "--env", NAME]
    options = ("--emulate", "cann=8.5.0,soc=a3", "--rounds", "4", "--sizes", "1,2,4")
    command += ["-o", str(tmp_path)]
    done = subprocess.run(
        [*command, *options],
        env={**os.environ, "COLUMNS": "160"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )

    assert 1 == done.returncode, done.stdout + done.stderr
    assert f"copies: {K * K:+} with each further capture" in done.stdout
    assert "R² 1.0000, over 12 captures" in done.stdout
    assert "copies: +0 with each further capture (95 %: 0 to 0), over 12 captures" in done.stdout


def test_a_build_for_another_soc_is_unknown_and_says_so():
    report = probe("cann=8.5.0,soc=a2", "--arm", "as_configured")

    assert "unknown" == report["verdict"]
    assert "failed in Open" in report["reason"]
