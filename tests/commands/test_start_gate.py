"""The gate before a server: it starts whatever happens, but where copies prove the fault and `block` is asked for."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from capture_canary.gate.remembered import MAX_FILES, Remembered, Verdict, key

DIGEST = "sha256:" + "0" * 64
DEGRADED = "cann=8.5.0,soc=a3"
FIXED = "cann=9.1.0,soc=a3"


def gate(*options: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "capture_canary.cli", "probe", *options],
        capture_output=True,
        check=False,
        env={**os.environ, **environ},
        text=True,
        timeout=120,
    )


def test_it_warns_of_what_copies_prove_and_lets_start():
    ran = gate("--gate", "--emulate", DEGRADED)
    assert 0 == ran.returncode
    assert "degraded" in ran.stderr
    assert "the server starts" in ran.stderr


def test_it_blocks_where_that_is_asked_for():
    ran = gate("--gate=block", "--emulate", DEGRADED)
    assert 1 == ran.returncode
    assert "the server starts" not in ran.stderr


def test_it_blocks_no_healthy_image():
    assert 0 == gate("--gate=block", "--emulate", FIXED).returncode


@pytest.mark.parametrize(
    "fault",
    ["fail:HcclAllReduce:1:507011", "hang:HcclAllReduce:1", "die:HcclAllReduce:1"],
)
def test_an_unknown_never_blocks(fault: str):
    options = ("--gate=block", "--budget=8", "--emulate", DEGRADED)
    ran = gate(*options, CAPTURE_CANARY_EMULATE_FAULT=fault)
    assert 0 == ran.returncode, ran.stderr
    assert "unknown" in ran.stderr
    assert "the server starts" in ran.stderr


def test_wrong_emulation_lets_start():
    ran = gate("--gate=block", "--emulate", "cann=never")
    assert 0 == ran.returncode
    assert "the server starts" in ran.stderr


def test_a_second_start_of_the_same_image_does_not_probe(tmp_path: Path):
    environ = {
        "CAPTURE_CANARY_GATE_CACHE": str(tmp_path / "cache"),
        "CAPTURE_CANARY_IMAGE": f"registry/vllm@{DIGEST}",
        "NODE_NAME": "n",
    }
    first = gate("--gate=block", "--emulate", DEGRADED, **environ)
    second = gate("--gate=block", "--emulate", DEGRADED, **environ)
    other = gate("--gate=block", "--emulate", FIXED, **environ)
    assert (1, 1, 0) == (first.returncode, second.returncode, other.returncode)
    assert "known since" not in first.stderr
    assert "known since" in second.stderr
    assert "known since" not in other.stderr


FULL = {"CAPTURE_CANARY_IMAGE": f"x@{DIGEST}", "NODE_NAME": "n", "HCCL_OP_EXPANSION_MODE": "AIV"}


@pytest.mark.parametrize(
    ("change", "driver"),
    [
        ({"CAPTURE_CANARY_IMAGE": "x@sha256:" + "1" * 64}, "25.2"),
        ({"NODE_NAME": "m"}, "25.2"),
        ({"HCCL_OP_EXPANSION_MODE": "AI_CPU"}, "25.2"),
        ({}, "25.3"),
    ],
)
def test_image_node_mode_and_driver_each_make_another_key(change: dict[str, str], driver: str):
    assert key(FULL, driver="25.2")[0] != key({**FULL, **change}, driver=driver)[0]


@pytest.mark.parametrize(
    ("change", "driver", "why"),
    [
        ({"CAPTURE_CANARY_IMAGE": "x:latest"}, "25.2", "digest"),
        ({"NODE_NAME": ""}, "25.2", "NODE_NAME"),
        ({}, None, "driver"),
    ],
)
def test_what_is_not_known_is_not_remembered(change: dict[str, str], driver: str | None, why: str):
    name, said = key({**FULL, **change}, driver=driver)
    assert name is None
    assert why in said


FOUND = Verdict(verdict="degraded", cause="regression", reason="r")


def test_a_verdict_is_remembered_for_a_week(tmp_path: Path):
    memory = Remembered(tmp_path / "new")
    memory.put("a", FOUND)
    assert FOUND == memory.get("a")
    path = tmp_path / "new/a"
    path.write_text(path.read_text().replace('"at":1', '"at":0'))
    assert memory.get("a") is None


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        json.dumps({"at": 1e12, "found": {"verdict": "healthy", "cause": None, "reason": ""}}),
    ],
)
def test_nonsense_in_the_folder_is_nothing(tmp_path: Path, content: str):
    (tmp_path / "a").write_text(content)
    assert Remembered(tmp_path).get("a") is None


def test_the_folder_does_not_grow_without_end(tmp_path: Path):
    memory = Remembered(tmp_path)
    for number in range(MAX_FILES + 20):
        memory.put(str(number), FOUND)
    assert MAX_FILES == len(list(tmp_path.iterdir()))


def test_a_folder_that_cannot_be_written_is_no_failure(tmp_path: Path):
    (tmp_path / "file").write_text("")
    Remembered(tmp_path / "file").put("a", FOUND)
    assert Remembered(tmp_path / "file").get("a") is None
