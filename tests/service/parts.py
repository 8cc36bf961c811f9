"""A prober with what it writes to, in this process."""

import os
from pathlib import Path

from capture_canary.config import Config, ConfigFile
from capture_canary.export.state import State
from capture_canary.gate.latch import Latch, LatchFile
from capture_canary.probe.base import base_environment
from capture_canary.schedule import Due, Plan, Schedule, SystemClock
from capture_canary.service.board import Board, View
from capture_canary.service.prober import Prober
from capture_canary.service.remembered import ScheduleMemory
from capture_canary.store import Store


class Parts:
    """A prober with what it writes to; one made anew in the same folder is a daemon started again."""

    def __init__(
        self,
        folder: Path,
        emulate: str = "cann=8.5.0,soc=a3,npus=2",
        *,
        fault: str = "",
        **settings: str,
    ):
        given = {
            "emulate": emulate,
            "state_dir": f"{folder}/s",
            "lock_file": f"{folder}/lock",
            **{name.replace("__", "."): value for name, value in settings.items()},
        }
        self.config: Config = ConfigFile(None, {}, given).current.config
        self.store = Store(folder / "s")
        self.schedule = Schedule(Plan(3600, None, 0), ScheduleMemory(self.store), SystemClock())
        self.board = Board(View(state=State(version="1", emulated=True, stack={})))
        self.latch = Latch(LatchFile(folder / "latch"))
        environ = {**os.environ, "CAPTURE_CANARY_EMULATE_FAULT": fault}
        self.base = base_environment(environ, emulate)
        self.prober = Prober(self.board, self.store, self.schedule, self.latch, base=self.base)

    def attempt(self) -> State:
        """Attempt a probe; return what is exported then."""
        self.prober.attempt(self.config, Due("requested", 0.0))
        return self.board.view.state
