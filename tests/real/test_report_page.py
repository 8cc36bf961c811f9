"""The report in a real browser: its charts are drawn, and hostile text runs nothing."""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from tests.builders import make_report, make_stack

from capture_canary import cli
from capture_canary.store import Store

pytestmark = pytest.mark.real
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def rendered(file: Path) -> str:
    """Return what a headless Chromium makes of a page."""
    if CHROMIUM is None:
        if os.environ.get("CI") == "true":
            pytest.fail("chromium is missing")
        pytest.skip("chromium is missing")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000"]
    profile = f"--user-data-dir={file.parent / 'profile'}"
    done = subprocess.run(
        [CHROMIUM, *options, profile, "--dump-dom", file.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout


def test_the_charts_are_drawn_and_nothing_else_runs(tmp_path: Path):
    attack = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    now = time.time()
    store = Store(tmp_path)
    store.add_event("start", at=now - 90000)
    store.note_stacks({"a": make_stack("8.5.0")}, at=now - 86400)
    store.add_probe(make_report("degraded", reason=attack), at=now - 86000, stack="a")
    store.add_probe(make_report("unknown"), at=now - 50000, stack="a")
    store.note_stacks({attack: make_stack("9.1.0", image=attack)}, at=now - 40000)
    store.add_probe(make_report("healthy"), at=now - 100, stack=attack)
    store.add_skip(attack, at=now, detail=attack)
    store.close()
    file = tmp_path / "report.html"
    assert (
        cli.main(["report", "--state-dir", str(tmp_path), "-o", str(file), "--node", attack]) == 0
    )
    page = rendered(file)
    charts = len(re.findall(r'data-chart="[0-9]+"', page))
    assert charts == 2 + 2 * 3 + 2, "the worst kind, three others, growth"
    assert page.count("<canvas") == charts
    assert "<title>owned" not in page
    assert "<img" not in page
