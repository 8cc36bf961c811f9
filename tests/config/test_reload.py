"""A file that changes, breaks, vanishes and comes back under a daemon."""

import os
import signal
from pathlib import Path

import pytest

from capture_canary.config import ConfigError, ConfigFile, Duration


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text("probe: {interval: 1h}\n")
    return path


@pytest.fixture
def held(path: Path) -> ConfigFile:
    return ConfigFile(path, {}, {"paused": "false"})


def test_nothing_new_is_no_reload(held: ConfigFile, path: Path):
    assert held.poll() is None
    path.write_text(path.read_text())
    assert (held.poll(), held.poll()) == (None, None)
    assert held.successes == 0


def test_a_change_is_taken_once_it_is_there_twice(held: ConfigFile, path: Path):
    path.write_text("probe: {interval: 2h}\nverd")
    assert held.poll() is None, "may still be being written"
    path.write_text("probe: {interval: 2h}\n")
    assert held.poll() is None
    reload = held.poll()
    assert reload is not None
    assert (reload.changed, reload.restart, reload.error) == (("probe.interval",), (), None)
    assert held.current.config.probe.interval == Duration.parse("2h")
    assert held.poll() is None
    assert (held.successes, held.failures, held.last_ok) == (1, 0, True)


def test_a_change_within_the_same_time_and_size_is_seen(held: ConfigFile, path: Path):
    before = path.stat()
    path.write_text("probe: {interval: 3h}\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    held.poll()
    assert held.poll() is not None


def test_a_configmaps_symlink_swap_is_seen(tmp_path: Path):
    for name, value in (("..1", "false"), ("..2", "true")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").write_text(f"paused: {value}\n")
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "config.yaml").symlink_to("..data/config.yaml")
    held = ConfigFile(tmp_path / "config.yaml", {}, {})
    (tmp_path / "..new").symlink_to("..2")
    (tmp_path / "..new").rename(tmp_path / "..data")
    held.poll()
    reload = held.poll()
    assert reload is not None
    assert reload.changed == ("paused",)
    assert held.current.config.paused


def test_a_bad_file_keeps_what_was_and_says_why_once(held: ConfigFile, path: Path):
    before = held.current
    path.write_text("probe: {interval: 2}\n")
    held.poll()
    reload = held.poll()
    assert reload is not None
    assert "config.yaml:1: probe.interval: '2' is not a duration" in str(reload.error)
    assert held.current is before
    assert (held.successes, held.failures, held.last_ok) == (0, 1, False)
    assert held.poll() is None, "the same bad file is one failure"
    path.write_text("probe: {interval: 1h}\n")
    held.poll()
    assert held.poll() is not None
    assert (held.successes, held.failures, held.last_ok) == (1, 1, True)


def test_a_vanished_file_keeps_what_was(held: ConfigFile, path: Path):
    path.unlink()
    held.poll()
    reload = held.poll()
    assert reload is not None
    assert "No such file" in str(reload.error)
    assert held.current.config.probe.interval == Duration.parse("1h")


def test_a_request_reloads_at_once_and_may_come_from_a_signal(held: ConfigFile, path: Path):
    old = signal.signal(signal.SIGHUP, lambda *_: held.request())
    try:
        path.write_text("probe: {interval: 2h}\n")
        signal.raise_signal(signal.SIGHUP)
        reload = held.poll()
    finally:
        signal.signal(signal.SIGHUP, old)
    assert reload is not None
    assert held.current.config.probe.interval == Duration.parse("2h")
    assert held.poll() is None


def test_flags_and_environment_stay_over_the_file(path: Path):
    held = ConfigFile(path, {"CAPTURE_CANARY_PROBE__RANKS": "4"}, {"probe.interval": "3h"})
    path.write_text("probe: {interval: 2h, ranks: 8, rounds: 9}\n")
    held.request()
    reload = held.poll()
    assert reload is not None
    assert reload.changed == ("probe.rounds",)


def test_what_needs_a_restart_waits_and_is_told(held: ConfigFile, path: Path):
    path.write_text("listen: :1\nprobe: {interval: 2h}\n")
    held.request()
    reload = held.poll()
    assert reload is not None
    assert (reload.changed, reload.restart) == (("probe.interval",), ("listen",))
    assert held.current.config.listen == ":9877"
    assert held.current.sources["listen"].kind == "default"
    assert held.pending == {"listen": ":1"}
    path.write_text("probe: {interval: 2h}\n")
    held.request()
    assert held.poll() is not None
    assert held.pending == {}


def test_without_a_file_only_a_request_reloads():
    held = ConfigFile(None, {}, {})
    assert held.poll() is None
    held.request()
    reload = held.poll()
    assert reload is not None
    assert reload == ((), (), None)


def test_the_first_reading_must_succeed(path: Path):
    path.write_text("x: 1\n")
    with pytest.raises(ConfigError):
        ConfigFile(path, {}, {})
