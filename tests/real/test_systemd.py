"""The unit for bare metal under a real systemd: with the privileges that it is left, and no others, it knows."""

import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
import yaml
from tests.real.conftest import need
from tests.running import free_port, until

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "deploy" / "systemd" / "capture-canary.service"
BOOT = """
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system /run/lock /run/here
mount --bind "$1" /run/here
mount -t tmpfs tmpfs /var/lib
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  umount -l /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup
else
  mount -t tmpfs tmpfs /sys/fs/cgroup && mkdir /sys/fs/cgroup/systemd /sys/fs/cgroup/devices
  mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
  mount -t cgroup -o devices cgroup /sys/fs/cgroup/devices || rmdir /sys/fs/cgroup/devices
fi
mount --bind "$1/console" /dev/console
cp "$1"/*.service "$1"/*.target /run/systemd/system/
export container=test
exec "$2" --system --unit=canary.target --log-target=console --show-status=no
"""
NAMESPACES = "--fork --kill-child --pid --mount-proc --mount --ipc --uts --cgroup"
JOIN = """
while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs"; shift; done; shift
exec "$@"
"""
"""Begins in these cgroups, so that what systemd makes of them is below."""
TARGET = """[Unit]
Description=The daemon alone
Wants=capture-canary.service
"""
COMMAND = f"{sys.prefix}/bin/capture-canary"
CONFIG = "/run/here/config.yaml"
# Our own environment and code may lie in a folder that the unit does not see, such as /tmp.
EMULATED = f"""BindReadOnlyPaths={sys.prefix} {ROOT}
Environment=CAPTURE_CANARY_EMULATE_NODE=/var/lib/capture-canary/node
StandardError=append:/run/here/log
[Install]"""
CAPABILITIES = {"SYS_PTRACE": 19, "DAC_READ_SEARCH": 2}
"""Numbers of <linux/capability.h>."""


@contextmanager
def own_cgroups() -> Iterator[list[Path]]:
    """Make a cgroup in each hierarchy; remove them with all that systemd made below."""
    root = Path("/sys/fs/cgroup")
    roots = (
        [root] if (root / "cgroup.controllers").exists() else [root / "systemd", root / "devices"]
    )
    made = [one / f"capture-canary-unit-{os.getpid()}" for one in roots if one.is_dir()]
    for one in made:
        one.mkdir()
    try:
        yield made
    finally:
        for one in made:
            below = [path for path in one.rglob("*") if path.is_dir()]
            for path in [*sorted(below, reverse=True), one]:  # the innermost first
                until(partial(_removed, path))


def _removed(cgroup: Path) -> bool:
    with suppress(OSError):  # a process that was killed is still on its way
        cgroup.rmdir()
    return not cgroup.exists()


class Unit:
    """The service, in namespaces of its own but for the network."""

    def __init__(self, folder: Path, systemd: str, cgroups: list[Path]) -> None:
        self.port = free_port()
        (folder / "config.yaml").write_text(
            yaml.safe_dump(
                {
                    "emulate": "cann=8.5.0,soc=a3,npus=2",
                    "listen": f"127.0.0.1:{self.port}",
                    "probe": {"jitter": "0s"},
                }
            )
        )
        text = UNIT.read_text()
        for was, becomes in (
            ("/opt/capture-canary/bin/capture-canary", COMMAND),
            ("/etc/capture-canary/config.yaml", CONFIG),
            ("After=network.target\n", "DefaultDependencies=no\n"),
            ("[Install]", EMULATED),
        ):
            assert was in text
            text = text.replace(was, becomes)
        (folder / "capture-canary.service").write_text(text)
        (folder / "canary.target").write_text(TARGET)
        self.log = folder / "log"
        self.console = folder / "console"
        with self.console.open("wb") as console:
            self.init = subprocess.Popen(
                [
                    *("/bin/sh", "-c", JOIN, "sh", *map(str, cgroups), "--"),
                    *(need("unshare"), *NAMESPACES.split(), "/bin/sh", "-c", BOOT, "sh"),
                    *(folder, systemd),
                ],
                stdout=console,
                stderr=console,
                stdin=subprocess.DEVNULL,
            )

    def said(self) -> str:
        """What it and systemd wrote."""
        return "".join(one.read_text() for one in (self.console, self.log) if one.exists())

    def metrics(self) -> str | None:
        """Its page; None where there is none yet."""
        assert self.init.poll() is None, self.said()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as page:
                return str(page.read().decode())
        except (OSError, urllib.error.URLError):
            return None

    def status(self) -> dict[str, str]:
        """/proc/PID/status of the daemon."""
        for path in Path("/proc").glob("[0-9]*"):
            words = (path / "cmdline").read_bytes().split(b"\0")
            if CONFIG.encode() in words and b"run" in words:
                return dict(
                    line.split(":\t", 1)
                    for line in (path / "status").read_text().splitlines()
                    if ":\t" in line
                )
        raise AssertionError(self.said())


@pytest.fixture
def unit(tmp_path: Path) -> Iterator[Unit]:
    systemd = "/lib/systemd/systemd"
    if not Path(systemd).exists() or os.geteuid():
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("needs systemd, and root")
    with own_cgroups() as cgroups:
        one = Unit(tmp_path, systemd, cgroups)
        yield one
        one.init.kill()
        one.init.wait()


def degraded(unit: Unit) -> str:
    """Return its page once it has that verdict."""
    page = unit.metrics() or ""
    return (
        page
        if re.search(r'^capture_canary_verdict\{.*"degraded"\} 1.0$', page, re.MULTILINE)
        else ""
    )


def test_the_unit_comes_to_its_verdict_with_what_it_is_left(unit: Unit):
    page = until(lambda: degraded(unit), patience=180)
    assert "\ncapture_canary_history_in_memory 0.0\n" in page
    status = unit.status()
    assert int(status["CapEff"], 16) == sum(1 << number for number in CAPABILITIES.values())
    assert int(status["CapBnd"], 16) == int(status["CapEff"], 16)
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    said = unit.said()
    assert "Operation not permitted" not in said
    assert "Read-only file system" not in said
