"""Time alone convicts in the daemon only when two probes an hour apart find the same."""

import time
from pathlib import Path

import pytest
from tests.service.parts import Parts

from capture_canary.config import ConfigFile


def test_a_second_probe_convicts_once_an_hour_has_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    parts = Parts(tmp_path)
    settings = {
        "emulate": "cann=8.5.0,soc=a3,npus=2",
        "state_dir": f"{tmp_path}/s",
        "lock_file": f"{tmp_path}/lock",
        "probe.preload": "false",
        "probe.collectives": "4",
        "verdict.floor_seconds": "0s",
        "verdict.floor_ratio": "0",
    }
    parts.config = ConfigFile(None, {}, settings).current.config
    begin, clock = time.time(), time.time

    for later in (0, 1800, 4000):
        monkeypatch.setattr(time, "time", lambda later=later: clock() + later)
        parts.attempt()

    found = [(row.verdict, row.cause) for row in sorted(parts.store.probes(), key=lambda r: r.at)]
    assert [("unknown", "suspect")] * 2 + [("degraded", "time_only")] == found
    assert time.time() - begin > 3600
