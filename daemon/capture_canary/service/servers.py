"""Keeps what serves on this node on the board: looked at now and then, in a thread of its own."""

import os
import threading
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from capture_canary.config.model import Config
from capture_canary.logging import get_logger
from capture_canary.service.board import Board
from capture_canary.service.settings import helpers
from capture_canary.stack.devices import device_nodes
from capture_canary.stack.processes import Finder, traced
from capture_canary.stack.servers import Servers, about_them, outlook
from capture_canary.trace.folder import TraceFolder
from capture_canary.trace.header import ProcessFacts


class ServerWatch:
    """Looks at /proc; a look that hangs holds up nothing but the next look."""

    def __init__(self, config: Config, folder: TraceFolder, board: Board) -> None:
        """Bind to what is read and written."""
        servers = config.servers
        self._helpers = helpers(config, os.environ)
        self._interval = float(servers.interval)
        self._finder = Finder(inspect=servers.inspect)
        self._folder = folder
        self._board = board
        self._next = 0.0
        self._look: threading.Thread | None = None
        self._said: list[tuple[object, ...]] = []
        self._log: Any = get_logger("servers")

    def poll(self) -> None:
        """Begin a look, if it is time and the last one has ended."""
        if time.monotonic() < self._next or (self._look and self._look.is_alive()):
            return
        self._next = time.monotonic() + self._interval
        facts = traced(process.file.facts for process in self._folder.processes.values())
        # A daemon thread: what hangs in somebody's file system must not keep us from ending.
        self._look = threading.Thread(target=self._run, args=(facts,), name="servers", daemon=True)
        self._look.start()

    def _run(self, facts: Mapping[tuple[int, int], ProcessFacts]) -> None:
        own = self._board.view.state.stack
        soc = own["soc"].value if "soc" in own else None
        found = self._helpers.look(self._finder, nodes=device_nodes(), soc=soc, traces=facts)
        about, why = about_them(own, found.servers)
        self._board.state(
            lambda state: msgspec.structs.replace(state, servers=found, about_servers=about)
        )
        self._say(found, about, why)

    def _say(self, found: Servers, about: bool | None, why: str) -> None:  # noqa: FBT001  # not a switch
        """Log what changed; a fleet's log must not repeat what it said a minute ago."""
        now = [(one.pid, one.start_time, one.mode.in_force) for one in found.servers]
        if now == self._said:
            return
        self._said = list(now)
        for one in found.servers:
            if one.captures:
                expected, reason = outlook(one)
                self._log.info(
                    "server",
                    pid=one.pid,
                    engine=one.engine,
                    role=one.role,
                    npus=one.npus,
                    pod=one.pod.name if one.pod else None,
                    mode=one.mode.in_force,
                    source=one.mode.source,
                    outlook=expected,
                    why=reason,
                )
        if about is False:
            self._log.warning("probe_not_about_servers", why=why)
