"""The real vLLM with vllm-ascend over two emulated NPUs: `probe --workload vllm`."""

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
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
OWN_NAME = "ACLGraphWrapper"
"""What keeps graphs, in vllm-ascend 0.10.1 to 0.30."""


@pytest.fixture(scope="module", autouse=True)
def _environment():
    needing.environment(NAME)


def probe(emulation: str, *options: str, **environ: str) -> dict[str, Any]:
    """Run the command; return the report that it prints. No socket of vLLM's stays in the temporary folder."""
    before = sockets()
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
    assert sockets() - before == set()
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def sockets() -> set[Path]:
    return {path for path in Path(tempfile.gettempdir()).iterdir() if path.is_socket()}


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


def law_met(series: dict[str, Any], *, tags: int) -> bool:
    """Whether each capture made the law's copies for the collectives counted in it, `tags` listed before the first."""
    for capture in series["captures"]:
        k = sum(capture["collectives"].values())
        # One peer, no scratch memory, from the second capture of a communicator on.
        if capture["h2d_copies"] != 5 * k + tags * k + k * (k + 1) // 2:
            return False
        tags += k
    return True


TAGS = SIZES * K + 2
"""Listed before the first round: what vLLM captured when it started, and its eager collectives of two kinds."""


def test_pieces_of_a_model_grow_by_the_law_each_with_its_own_k():
    report = probe("cann=8.5.0,soc=a3", "--cudagraph-mode", "PIECEWISE", "--arm", "as_configured")

    assert ("degraded", "aicpu_resource_list", True) == (
        report["verdict"],
        report["cause"],
        report["matches_law"],
    ), report["reason"]
    for series in report["series"]:
        captures = series["captures"]
        # The embedding's all-reduce is in the first piece; each layer's attention begins another.
        assert [1, 2, 2] * SIZES * ROUNDS == [sum(one["collectives"].values()) for one in captures]
        assert [*range(ROUNDS)] == sorted({one["round"] for one in captures})
        assert law_met(series, tags=TAGS)


@pytest.mark.long
def test_decoding_alone_is_captured_by_the_law():
    report = probe(
        "cann=8.5.0,soc=a3", "--cudagraph-mode", "FULL_DECODE_ONLY", "--arm", "as_configured"
    )

    assert ("degraded", True) == (report["verdict"], report["matches_law"]), report["reason"]
    assert all(law_met(series, tags=TAGS) for series in report["series"])


@pytest.mark.long
def test_the_graphs_of_its_start_alone_tell():
    report = probe("cann=8.5.0,soc=a3", "--at-start")

    assert ("degraded", "aicpu_resource_list") == (report["verdict"], report["cause"])
    for series in report["series"]:
        assert "kept" == series["graphs"]
        assert ROUNDS * SIZES == len(series["captures"])


def test_a_version_that_nobody_has_seen_is_judged_by_its_start(tmp_path: Path):
    """The real vllm-ascend, its class of graphs under another name."""
    installed = needing.environment(NAME).site_packages() / "vllm_ascend"
    shutil.copytree(installed, tmp_path / "vllm_ascend", ignore=shutil.ignore_patterns("*.pyc"))
    for file in (tmp_path / "vllm_ascend").rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        if OWN_NAME in text:
            file.write_text(text.replace(OWN_NAME, "NobodyHasSeenThis"), encoding="utf-8")

    report = probe("cann=8.5.0,soc=a3", "--arm", "as_configured", PYTHONPATH=str(tmp_path))

    assert ("degraded", True) == (report["verdict"], report["matches_law"]), report["reason"]
    assert "only the graphs of vLLM's own start were seen" in report["reason"]
    assert f"neither vllm_ascend.compilation.acl_graph.{OWN_NAME} nor" in report["reason"]
    assert {("kept", SIZES)} == {(one["graphs"], len(one["captures"])) for one in report["series"]}


def test_9_1_is_healthy():
    report = probe("cann=9.1.0,soc=a3")

    assert ("healthy", None) == (report["verdict"], report["cause"]), report["reason"]


def test_out_of_streams_is_unknown_and_leaves_nothing():
    fault = "fail:aclmdlRICaptureBegin:3:207008"
    report = probe("cann=8.5.0,soc=a3", "--budget", "300", CAPTURE_CANARY_EMULATE_FAULT=fault)

    assert "unknown" == report["verdict"]
    assert report["reason"]


BAD = {
    "too little HBM": ("cann=8.5.0,soc=a3,hbm=1MiB", ""),
    "a rank dies": ("cann=8.5.0,soc=a3", "die:HcclAllReduce:40@1"),
}


@pytest.mark.long
@pytest.mark.parametrize(("emulation", "fault"), BAD.values(), ids=BAD.keys())
def test_bad_node_is_unknown_with_a_reason(emulation: str, fault: str):
    options = ("--arm", "as_configured", "--budget", "300")
    report = probe(emulation, *options, CAPTURE_CANARY_EMULATE_FAULT=fault)

    assert "unknown" == report["verdict"]
    assert report["reason"]
    assert not any(series["captures"][2:] for series in report["series"])


def test_a_build_for_another_soc_is_unknown_and_says_so():
    report = probe("cann=8.5.0,soc=a2", "--arm", "as_configured")

    assert "unknown" == report["verdict"]
    assert "failed in Open" in report["reason"]
