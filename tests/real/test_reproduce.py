"""`reproduce` with the real vLLM, in short: a straight line by the law, also after SIGKILL; flat with CANN 9.1.0."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.real import needing

from capture_canary.reproduction.journal import NAME as JOURNAL

pytestmark = pytest.mark.real

NAME = "vllm-0.23.0"
SECONDS = 600
K, ROUNDS, SIZES = 5, 6, (1, 2, 4)
MARK = "CANARY_TEST_OF"


@pytest.fixture(scope="module", autouse=True)
def _environment():
    needing.environment(NAME)


def start(folder: Path, cann: str, log: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "capture_canary.cli", "reproduce", "--env", NAME]
    command += ["--emulate", f"cann={cann},soc=a3", "--rounds", str(ROUNDS)]
    command += ["--sizes", ",".join(map(str, SIZES)), "-o", str(folder)]
    environ = {**os.environ, "COLUMNS": "200", MARK: str(folder)}
    with log.open("wb") as file:
        return subprocess.Popen(command, env=environ, stdout=file, stderr=file)


def reproduce(folder: Path, cann: str) -> tuple[int, str]:
    log = folder.with_suffix(".log")
    code = start(folder, cann, log).wait(SECONDS)
    return code, log.read_text()


def until(ask: Any) -> None:
    end = time.monotonic() + SECONDS
    while not ask():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.1)


def ours(folder: Path) -> list[str]:
    """The processes of a reproduction that keeps its journal there."""
    wanted, found = f"{MARK}={folder}".encode(), []
    for process in Path("/proc").iterdir():
        try:
            if wanted in (process / "environ").read_bytes().split(b"\0"):
                found.append(process.name)
        except OSError:
            continue
    return found


def test_killed_it_goes_on_and_shows_a_straight_line_by_the_law(tmp_path: Path):
    folder = tmp_path / "out"
    first = start(folder, "8.5.0", tmp_path / "first.log")

    def in_second_arm() -> bool:
        """Both arms have begun, and the second has captured."""
        assert first.poll() is None, (tmp_path / "first.log").read_text()
        file = folder / JOURNAL
        lines = file.read_bytes().splitlines() if file.exists() else []
        second = next((n for n, line in enumerate(lines) if b'"arm":"aiv"' in line), len(lines))
        return any(b'"type":"captured"' in line for line in lines[second:])

    until(in_second_arm)
    first.send_signal(signal.SIGKILL)
    first.wait(60)
    until(lambda: not ours(folder))

    code, said = reproduce(folder, "8.5.0")

    assert 1 == code, said
    assert f"as configured: kept, {ROUNDS * len(SIZES)} captures" in said
    assert "AIV: interrupted in round" in said
    assert 1 == said.count("starting vLLM"), "only the arm that was interrupted is measured again"
    assert f"copies: {K * K:+} with each further capture" in said
    assert f"R² 1.0000, over {ROUNDS * len(SIZES)} captures" in said
    assert "copies: +0 with each further capture (95 %: 0 to 0)" in said
    report = json.loads((folder / "report.json").read_bytes())
    assert ("degraded", "aicpu_resource_list", True) == (
        report["verdict"],
        report["cause"],
        report["matches_law"],
    )
    for series in report["series"]:
        copies = [one["h2d_copies"] for one in series["captures"]]
        wanted = K * K if series["arm"] == "as_configured" else 0
        assert {wanted} == {b - a for a, b in itertools.pairwise(copies)}
    page = (folder / "report.html").read_text()
    assert "Ended, and begun anew" in page
    assert "growth law <b>met exactly</b>" in page


def test_the_fixed_cann_is_flat_and_the_finished_run_is_only_shown_again(tmp_path: Path):
    code, said = reproduce(tmp_path / "out", "9.1.0")

    assert 0 == code, said
    report = json.loads((tmp_path / "out" / "report.json").read_bytes())
    assert "healthy" == report["verdict"], report["reason"]
    copies = {one["h2d_copies"] for series in report["series"] for one in series["captures"]}
    assert {0} == copies

    code, said = reproduce(tmp_path / "out", "9.1.0")

    assert (0, 0) == (code, said.count("starting vLLM"))
    code, said = reproduce(tmp_path / "out", "8.5.0")
    assert 2 == code
    assert "hcomm was 9.1.0, is 8.5.0" in " ".join(said.split())
