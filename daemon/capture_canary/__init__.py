"""Capture Canary: health checks of graph capture on Ascend NPU nodes."""

from importlib.metadata import version

__version__ = version("capture-canary")
