"""Every command that a page of the documentation shows is run: ours here or by a named test, others as listed."""

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from capture_canary import cli
from capture_canary.store import Store
from tests.builders import make_report, make_stack

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    page
    for pattern in (
        "*.md",
        "docs/*.md",
        "docs/*/*.md",
        "docs/zh/*/*.md",
        "helm/*/*.md",
        "daemon/*/*.md",
    )
    for page in ROOT.glob(pattern)
    if page.name != "CHANGELOG.md"
)
OURS = "capture-canary"

ELSEWHERE = {
    # the command's beginning: what runs it
    "capture-canary run": "runs until it is ended: tests/service/test_daemon.py",
    "capture-canary exec": "tests/test_execute.py, tests/real/test_vllm_served.py",
    "capture-canary reproduce": "minutes, and a real vLLM: tests/real/test_reproduce.py, test_reproduce_images.py",
    "capture-canary env create": "gigabytes: every real test that needs an environment (tests/real/needing.py)",
    "capture-canary env path": "needs an environment: tests/environments/test_command.py",
    "capture-canary env exec": "needs an environment: tests/real/test_torch_npu.py",
    "capture-canary images build": "minutes, and a Docker Engine: tests/real/test_images.py",
    "capture-canary images standins": "needs root and a Docker Engine: tests/real/test_images.py",
    "capture-canary images verify": "needs a Docker Engine: tests/real/test_images.py",
    "capture-canary images size": "needs a Docker Engine: tests/real/test_images.py",
    "capture-canary story NODE --prometheus": "needs a Prometheus: tests/real/monitoring/test_fired.py, tests/report",
    "capture-canary doctor --assumptions": "a minute: tests/doctor/test_assumptions.py",
}
OTHERS = {
    # the program: what runs it, or why nothing does
    "make": ".ci/run",
    ".ci/run": "CI itself",
    "pip": "the Makefile's install, and images/Dockerfile",
    "python": "the bench of its page",
    "helm": "tests/real/cluster",
    "kubectl": "tests/real/cluster",
    "rm": "says the file that tests/gate/test_latch.py removes",
    "docker": "tests/real",
    "amtool": "tests/real/monitoring/test_example.py",
    "promtool": "tests/real/test_rules.py",
    "systemctl": "there is no systemd here; tests/real/test_bare_metal.py holds the unit against systemd-analyze",
}
PLACES = {
    "FILE": "config.yaml",
    "/etc/capture-canary/config.yaml": "config.yaml",
    "FILE|DIR": "profile",
    "DIR": "profile",
}
"""What a page leaves to the reader, and what stands there in the test."""


class Shown(NamedTuple):
    """A command on a page."""

    place: str
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.words)


def code_lines(page: Path) -> list[tuple[int, str]]:
    """The lines of indented and fenced blocks, with their numbers."""
    found, fenced = [], False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            found.append((number, line.strip()))
    return found


def words_of(line: str) -> tuple[str, ...]:
    """A shown line without what is said of it: behind `#`, or behind a gap."""
    bare = re.split(r"\s#\s|\s{3,}", line)[0].rstrip(" …")
    try:
        return tuple(shlex.split(bare.split(" && ")[0]))
    except ValueError:
        return ()


def shown() -> list[Shown]:
    """Every line of code whose first word is a program."""
    found = []
    for page in PAGES:
        for number, line in code_lines(page):
            words = words_of(line)
            if words and (words[0] == OURS or words[0] in OTHERS):
                found.append(Shown(f"{page.relative_to(ROOT)}:{number}", words))
    return found


SHOWN = [one for one in shown() if one.words[0] == OURS]


def elsewhere(one: Shown) -> str | None:
    return next((why for start, why in ELSEWHERE.items() if one.text.startswith(start)), None)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to type commands in: a history, settings, a profile, a server's log."""
    folder = tmp_path_factory.mktemp("node")
    store = Store(folder / "state")
    store.note_stacks({"a": make_stack("8.5.0")}, at=time.time() - 60)
    store.add_probe(make_report("degraded"), at=time.time() - 60, stack="a")
    store.close()
    (folder / "config.yaml").write_text("mode: observe\n")
    (folder / "daemon.log").write_text("")
    (folder / "profile").mkdir()
    (folder / "profile" / "api_statistic_1.csv").write_text(
        "Device_id,Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance\n"
        "host,runtime,MemCopySync,3000.0,600,5.0,4,9,0.1\n"
    )
    return folder


HERE = [one for one in SHOWN if elsewhere(one) is None]


@pytest.mark.parametrize("one", HERE, ids=lambda one: f"{one.place} {one.text}"[:90])
def test_a_command_of_ours_runs(one: Shown, node: Path):
    words = [PLACES.get(word, word) for word in one.words[1:]]
    environ = {
        "CAPTURE_CANARY_EMULATE": "cann=8.5.0,soc=a3",
        "CAPTURE_CANARY_STATE_DIR": str(node / "state"),
        "CAPTURE_CANARY_TRACE_DIR": str(node / "traces"),
        "CAPTURE_CANARY_LOCK_FILE": str(node / "probe.lock"),
    }

    done = subprocess.run(
        [sys.executable, "-m", "capture_canary.cli", *words],
        cwd=node,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode in (0, 1, 3), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout + done.stderr


@pytest.mark.parametrize("one", [one for one in SHOWN if elsewhere(one)], ids=lambda one: one.place)
def test_one_that_another_test_runs_has_options_that_there_are(one: Shown):
    parsed = cli._parse([PLACES.get(word, word) for word in one.words[1:]])  # noqa: SLF001  # parsed, not run

    assert callable(parsed.run)


def test_every_page_is_read_and_every_exception_is_of_use():
    assert len(SHOWN) > 20
    for start in ELSEWHERE:
        assert any(one.text.startswith(start) for one in SHOWN), f"no page shows {start}"
    tests = re.findall(r"(?:tests/)?[a-z_/]*test_[a-z_]+\.py", " ".join(ELSEWHERE.values()))
    for name in tests:
        places = [ROOT / name, ROOT / "tests" / "real" / name]
        assert any(place.exists() for place in places), f"{name} is not there"


def test_no_program_is_shown_that_nobody_runs():
    """A line that looks like a command, of a program that is in neither list."""
    programs = re.compile(
        r"(sudo|systemctl|promtool|amtool|curl|wget|apt|apt-get|pytest|npm|go|git)\s"
    )
    strange = [
        f"{page.relative_to(ROOT)}:{number}: {line}"
        for page in PAGES
        for number, line in code_lines(page)
        if (found := programs.match(line)) and found[1] not in OTHERS
    ]

    assert [] == strange
