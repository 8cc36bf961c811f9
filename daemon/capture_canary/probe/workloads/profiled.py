"""torch-npu's profiler around a rank's captures, at the level that names the synchronous copy (rtMemcpy)."""
# pyright: reportMissingImports=false

import ctypes
import importlib
from pathlib import Path
from typing import Any

from capture_canary.profiles.statistic import PATTERN

LIBRARY = "libmsprofiler.so"
"""CANN's, which torch-npu's profiler asks for everything."""


class Profiler:
    """A profile under way."""

    def __init__(self, folder: str) -> None:
        """Begin; what cannot be had torch-npu prints and goes on without."""
        self._folder = Path(folder)
        profiler: Any = importlib.import_module("torch_npu").profiler
        # Level1 has no runtime rows: MemCopySync is one.
        config = profiler._ExperimentalConfig(profiler_level=profiler.ProfilerLevel.Level2)  # noqa: SLF001  # as torch-npu documents
        self._profile = profiler.profile(
            activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.NPU],
            on_trace_ready=profiler.tensorboard_trace_handler(folder),
            experimental_config=config,
        )
        self._profile.start()

    def end(self) -> str | None:
        """Write it; return why there is none, where there is none."""
        self._profile.stop()
        if any(self._folder.rglob(PATTERN)):
            return None
        return f"torch-npu's profiler wrote no {PATTERN} into {self._folder}: {_why()}"


def _why() -> str:
    try:
        ctypes.CDLL(LIBRARY)
    except OSError as error:
        return f"{error}"
    return f"it could not start, or msprof, which reads what {LIBRARY} wrote, is not there"
