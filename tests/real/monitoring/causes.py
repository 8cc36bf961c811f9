"""Makes each alert's cause happen on a node of its own, and mends it again."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import yaml
from tests.running import PATIENCE, Running, free_port, until

from capture_canary.probe.base import base_environment
from capture_canary.store import Store

SERVER = Path(__file__).parents[2] / "service" / "server.py"
A3 = "cann=8.5.0,soc=a3"


class Node:
    """An emulated node with a daemon; what is wrong with it is in its settings, which a mended one has not."""

    def __init__(
        self, folder: Path, name: str, *, emulate: str = A3, fault: str = "", **config: Any
    ):
        self.name, self.emulate, self.fault = name, emulate, fault
        self.folder = folder / name
        self.folder.mkdir()
        self.port = free_port()
        self.config = self.folder / "config.yaml"
        self.environ = {"CAPTURE_CANARY_EMULATE_NODE": str(self.folder / "node")}
        self.servers: list[subprocess.Popen[bytes]] = []
        self.write(**config)
        self.daemon: Running | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def running(self) -> Running:
        assert self.daemon is not None
        return self.daemon

    def write(self, **config: Any) -> None:
        """Replace the settings; probes come when asked for."""
        probe = {"interval": "12h", **config.pop("probe", {})}
        self.config.write_text(yaml.safe_dump({"probe": probe, **config}))

    def start(self) -> None:
        self.daemon = Running(
            self.folder,
            emulate=self.emulate,
            fault=self.fault,
            port=self.port,
            config=self.config,
            environ=self.environ,
        )

    def restart(self) -> None:
        self.running.end()
        self.start()
        until(lambda: self.running.metric("probe_runs_total") is not None)

    def rewrite(self, statement: str) -> None:
        """Change the history while the daemon is away."""
        self.running.end()
        with closing(sqlite3.connect(self.folder / "state" / "history.db")) as history:
            history.execute(statement)
            history.commit()
        self.start()
        until(lambda: self.running.metric("probe_runs_total") is not None)

    def reload(self, **config: Any) -> None:
        self.write(**config)
        self.running.process.send_signal(signal.SIGHUP)
        until(lambda: "config_reloaded" in [one["event"] for one in self.running.events()])

    def serve(self, emulate: str) -> None:
        """Have a traced server load and stay."""
        environ = base_environment({**os.environ, **self.environ}, emulate)
        environ["CAPTURE_CANARY_TRACE_DIR"] = str(self.folder / "traces")
        (self.folder / "traces").mkdir(exist_ok=True)
        command = [sys.executable, "-m", "capture_canary.cli", "exec", "--", sys.executable]
        staying = [str(Path(__file__).with_name("staying.py")), str(SERVER), "1"]
        self.servers.append(
            subprocess.Popen([*command, *staying], env=environ, start_new_session=True)
        )

    def end_servers(self) -> None:
        while self.servers:
            server = self.servers.pop()
            os.killpg(server.pid, signal.SIGKILL)
            server.wait(PATIENCE)

    def end(self) -> None:
        self.end_servers()
        if self.daemon and self.daemon.process.poll() is None:
            self.daemon.process.kill()
            self.daemon.process.wait(PATIENCE)


class Cause:
    """What is wrong with one node, from `begin` to `mend`, and the alerts of it."""

    alerts: tuple[str, ...]
    labels: ClassVar[dict[str, str]] = {}

    def __init__(self, folder: Path) -> None:
        self.node = self.make(folder)

    def make(self, folder: Path) -> Node:
        return Node(folder, type(self).__name__)

    def begin(self) -> None:
        """Make it happen; the daemon has been started and probed once, if it could."""
        self.node.running.probe_again()

    def mend(self) -> None:
        """Two probes that find nothing growing."""
        self.node.reload(probe={"expansion_mode": "AIV"})
        self.node.running.probe_again()
        self.node.running.probe_again()


class Degraded(Cause):
    alerts = ("CaptureCanaryDegraded",)


class NotEffective(Cause):
    """Sizes at which AIV falls back to the AI CPU."""

    alerts = ("CaptureCanaryDegradedDespiteMode",)

    def make(self, folder: Path) -> Node:
        large = {"expansion_mode": "AIV", "shapes": [600_000], "attribute": False}
        return Node(folder, type(self).__name__, probe=large)


class Regression(Cause):
    """An hcomm that calls itself 9.2.0 and still has the fault."""

    alerts = ("CaptureCanaryDegradedOnFixedCann",)

    def make(self, folder: Path) -> Node:
        node = Node(folder, type(self).__name__)
        cache = node.folder / "cache"
        home = base_environment({**os.environ, "XDG_CACHE_HOME": str(cache)}, A3)[
            "ASCEND_HOME_PATH"
        ]
        (version,) = Path(home).glob("share/info/hcomm/version.info")
        version.write_text(re.sub(r"8\.5\.0", "9.2.0", version.read_text()))
        node.environ["XDG_CACHE_HOME"] = str(cache)
        return node


class TimeOnly(Cause):
    """A history in which two probes found growth by time alone: to measure it takes a quiet machine and an hour."""

    alerts = ("CaptureCanaryDegradedByTimeOnly",)

    def make(self, folder: Path) -> Node:
        return Node(folder, type(self).__name__, probe={"expansion_mode": "AIV"})

    def begin(self) -> None:
        self.node.running.end()
        store = Store(self.node.folder / "state")
        (row,) = store.probes(whole=True)
        assert row.report is not None
        found = msgspec.structs.replace(
            row.report, verdict="degraded", cause="time_only", impact=None
        )
        for hours in (2, 1):
            store.add_probe(found, at=row.at - 3600 * hours, stack=row.stack)
        store.close()
        self.node.start()
        until(lambda: self.node.running.metric("probe_runs_total") is not None)

    def mend(self) -> None:
        self.node.running.probe_again()
        self.node.running.probe_again()


class TimeOnlyToo(TimeOnly):
    """The second node that turns within the hour: then they have a cause in common."""

    alerts = ("CaptureCanaryCommonCause",)


class Failing(Cause):
    """Probes that break off."""

    alerts = ("CaptureCanaryProbeFailing",)

    def make(self, folder: Path) -> Node:
        return Node(folder, type(self).__name__, fault="fail:aclmdlRICaptureEnd:2:100000@0")

    def mend(self) -> None:
        self.node.fault = ""
        self.node.restart()
        self.node.running.probe_again()


class Budget(Cause):
    """Device-seconds for one probe that takes all its time, and after the first one for none."""

    alerts = ("CaptureCanaryBudgetExceeded",)

    def make(self, folder: Path) -> Node:
        gate = {"budget": "40s", "retry": "10s"}
        return Node(folder, type(self).__name__, probe={"interval": "1m"}, gate=gate)

    def begin(self) -> None:
        """It comes with the next probe that is due."""

    def mend(self) -> None:
        self.node.reload(probe={"expansion_mode": "AIV"})
        self.node.running.probe_again()


class Skipped(Cause):
    """No two NPUs that are free."""

    alerts = ("CaptureCanaryProbeSkipped",)

    def make(self, folder: Path) -> Node:
        return Node(folder, type(self).__name__, emulate=f"{A3},npus=1", gate={"retry": "10s"})

    def begin(self) -> None:
        """Nothing more to do."""

    def mend(self) -> None:
        self.node.emulate = A3
        self.node.environ["CAPTURE_CANARY_EMULATE_NODE"] += "-of-16"
        self.node.restart()
        self.node.running.process.send_signal(signal.SIGUSR1)
        until(lambda: self.node.running.metric("probe_runs_total"))


class Latched(Cause):
    """A device error, once too often."""

    alerts = ("CaptureCanaryProbingLatched",)

    def make(self, folder: Path) -> Node:
        fault = "fail:aclmdlRICaptureEnd:2:507015@0"
        return Node(folder, type(self).__name__, fault=fault, gate={"device_errors": 1})

    def begin(self) -> None:
        until(lambda: self.node.running.metric("probing_latched") == 1)

    def mend(self) -> None:
        self.node.fault = ""
        (self.node.folder / "state" / "probe-latch.json").unlink()
        self.node.restart()
        self.node.running.probe_again()


class BadConfig(Cause):
    """A mistake in the file."""

    alerts = ("CaptureCanaryConfigReloadFailed",)

    def make(self, folder: Path) -> Node:
        return Node(folder, type(self).__name__, emulate="cann=9.1.0,soc=a3")

    def begin(self) -> None:
        self.node.write(no_such_key=1)
        self.node.running.process.send_signal(signal.SIGHUP)
        until(lambda: self.node.running.metric("config_last_reload_successful") == 0)

    def mend(self) -> None:
        self.node.reload()


class Gone(Cause):
    """The only daemon of its pool ends."""

    alerts = ("CaptureCanaryAbsent",)

    def make(self, folder: Path) -> Node:
        return Node(folder, type(self).__name__, emulate="cann=9.1.0,soc=a3")

    def begin(self) -> None:
        self.node.running.end()

    def mend(self) -> None:
        self.node.start()


class Served(Cause):
    """Two ranks of one server that differ in CANN, on an exposed stack, and too few captures to judge."""

    alerts = (
        "CaptureCanaryVersionSkew",
        "CaptureCanaryMitigationMissing",
        "CaptureCanaryUnknown",
    )
    labels: ClassVar[dict[str, str]] = {"namespace": "serving", "workload": "llm"}

    def make(self, folder: Path) -> Node:
        return Node(folder, type(self).__name__, servers={"interval": "5s"})

    def begin(self) -> None:
        self.node.rewrite("DELETE FROM probes")  # the next one is planned for tomorrow
        self.node.serve(A3)
        self.node.serve("cann=9.0.0,soc=a3")

    def mend(self) -> None:
        self.node.end_servers()
        self.node.running.probe_again()


class Untraced(Cause):
    """A worker that was started to be traced, and whose LD_PRELOAD something replaced."""

    alerts = ("CaptureCanaryTracerMissing",)

    def make(self, folder: Path) -> Node:
        return Node(folder, type(self).__name__, servers={"interval": "5s", "inspect": True})

    def begin(self) -> None:
        environ = {**os.environ, "CAPTURE_CANARY_TRACE_DIR": str(self.node.folder / "traces")}
        worker = ["VLLM::Worker_TP0", "-c", "import signal; signal.pause()"]
        self.node.servers.append(
            subprocess.Popen(worker, executable=sys.executable, env=environ, start_new_session=True)
        )

    def mend(self) -> None:
        self.node.end_servers()


ALL: tuple[Callable[[Path], Cause], ...] = (
    TimeOnly,
    TimeOnlyToo,
    Degraded,
    NotEffective,
    Regression,
    Failing,
    Budget,
    Skipped,
    Latched,
    BadConfig,
    Gone,
    Served,
    Untraced,
)
