"""`probe --workload torch` with the real torch-npu, of the new symbol look-up (2.13) and of the old (2.9)."""

import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.real import needing

from capture_canary import emulate, environments
from capture_canary.model import Report
from capture_canary.probe.measure import Probe, ProbeSettings
from capture_canary.probe.messages import Kind
from capture_canary.trend import law

pytestmark = pytest.mark.real

SECONDS = 300
"""Of which a busy machine takes most to import torch, twice."""
FAULT = "CAPTURE_CANARY_EMULATE_FAULT"
K = 5
"""Collectives a graph, as a model of two layers has."""


class Case(NamedTuple):
    environment: str
    torch_npu: str


IN_CI = ("torch-2.13.0", "torch-2.9.0")
"""Of the new symbol look-up and of the old. The others by hand: `capture-canary env create NAME`, `pytest -k NAME`."""


def cases() -> Iterator[Any]:
    """Every environment with torch alone."""
    for name in environments.names():
        pins = environments.recipe(name).wheels.read_text(encoding="utf-8")
        (torch_npu,) = re.findall(r"^torch-npu==(\S+)$", pins, re.MULTILINE)
        if name.startswith("torch-"):
            marks = () if name in IN_CI else (pytest.mark.long,)
            yield pytest.param(Case(name, torch_npu), marks=marks, id=name)


@pytest.fixture(scope="module", params=cases())
def case(request: pytest.FixtureRequest) -> Case:
    needing.environment(request.param.environment)
    return request.param  # type: ignore[no-any-return]


def probe(case: Case, emulation: str, *options: str, **environ: str) -> dict[str, Any]:
    """Run the command; return the report that it prints."""
    command = [sys.executable, "-m", "capture_canary.cli", "probe", "--workload", "torch", "--json"]
    done = subprocess.run(
        [*command, "--env", case.environment, "--emulate", emulation, *options],
        env={**os.environ, **environ},
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.stdout, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def counted(series: dict[str, Any]) -> list[int]:
    return [capture["h2d_copies"] for capture in series["captures"]]


def test_8_5_is_degraded_by_the_law_and_aiv_mitigates(case: Case):
    report = probe(case, "cann=8.5.0,soc=a3", "--collectives", str(K))

    assert ("degraded", "aicpu_resource_list", True) == (
        report["verdict"],
        report["cause"],
        report["matches_law"],
    )
    assert report["emulated"]
    assert report["control"] > 0
    assert {"value": case.torch_npu, "source": "torch_npu.__version__"} == report["stack"][
        "torch_npu"
    ]
    assert {0, 1} == {series["rank"] for series in report["series"]}
    for series in report["series"]:
        numbers = range(1, len(series["captures"]) + 1)
        expected = [law.growing(K, 1, n) for n in numbers]
        aiv = series["arm"] == "aiv"
        assert counted(series) == ([0] * len(numbers) if aiv else expected)
        for capture in series["captures"]:
            assert {series["collective"]: K} == capture["collectives"]
            assert capture["seconds"] > 0


def test_aiv_on_8_5_is_mitigated(case: Case):
    report = probe(case, "cann=8.5.0,soc=a3", HCCL_OP_EXPANSION_MODE="AIV")

    assert ("mitigated", "AIV") == (report["verdict"], report["mode"])
    assert {"as_configured", "ai_cpu"} == {series["arm"] for series in report["series"]}


def test_9_1_is_healthy_in_every_kind(case: Case):
    report = probe(case, "cann=9.1.0,soc=a3")

    assert ("healthy", None) == (report["verdict"], report["cause"])
    kinds = {(one["collective"], one["graphs"]) for one in report["series"]}
    assert set(itertools.product(("AllReduce", "AllGather"), ("kept", "destroyed"))) == kinds
    assert {6} == {len(one["captures"]) for one in report["series"] if one["graphs"] == "kept"}


def test_half_of_the_fix_grows_in_kept_all_gather_alone(case: Case):
    report = probe(case, "hcomm=9.1.0-pr2405,soc=a3", "--full", "--arm", "as_configured")

    growing = {
        (one["collective"], one["graphs"])
        for one in report["series"]
        if counted(one)[-1] > counted(one)[1]
    }
    assert {("AllGather", "kept")} == growing


BAD = {
    "out of streams": ("fail:aclmdlRICaptureBegin:3:207008", "207008"),
    "dies in capture": ("die:HcclAllReduce:20@1", "rank 1 failed in MakeCapture"),
    "no NPU": ("fail:aclrtSetDevice:1:507899", "failed in Open"),
}


@pytest.mark.parametrize(("fault", "reason"), BAD.values(), ids=BAD.keys())
def test_bad_node_is_unknown_with_a_reason(case: Case, fault: str, reason: str):
    report = probe(case, "cann=8.5.0,soc=a3", **{FAULT: fault})

    assert "unknown" == report["verdict"]
    assert reason in report["reason"]


def test_a_profiler_that_the_stack_has_not_is_said_and_keeps_no_verdict_back(
    case: Case, tmp_path: Path
):
    options = ("--profiler", str(tmp_path), "--arm", "as_configured", "--rounds", "1")
    report = probe(case, "cann=8.5.0,soc=a3", *options)

    assert "degraded" == report["verdict"], report["reason"]
    assert "torch-npu's profiler wrote no api_statistic" in report["reason"]
    assert "libmsprofiler.so" in report["reason"]


def test_too_little_hbm_is_unknown_with_a_reason(case: Case):
    report = probe(case, "cann=8.5.0,soc=a3,hbm=1MiB", "--arm", "as_configured")

    assert "unknown" == report["verdict"]
    assert "failed in" in report["reason"]


def test_one_npu_too_few_is_said(case: Case):
    report = probe(case, "npus=1")

    assert "torch-npu sees 1 NPU" in report["reason"]


def test_a_torch_of_another_torch_npu_is_unknown(tmp_path: Path):
    """The torch of one environment with the torch-npu of another."""
    other, own = needing.environment("torch-2.13.0"), needing.environment("torch-2.9.0")
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    for name in ("torch_npu", "torch_npu-2.13.0.dist-info"):
        (mixed / name).symlink_to(other.site_packages() / name)
    variables = own.variables(emulate.parse("cann=8.5.0"), os.environ)
    base = {**os.environ, **variables, "PYTHONPATH": str(mixed)}
    kinds = (Kind(collective="AllReduce", graphs="destroyed"),)
    settings = ProbeSettings(
        workload="torch", python=str(own.python), kinds=kinds, budget_seconds=SECONDS
    )
    report: Report = Probe(settings, base, emulated=True, observe=lambda _: None).run()

    assert "unknown" == report.verdict
    assert "failed in Open" in report.reason
