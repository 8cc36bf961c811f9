"""The settings: one typed model, read from file, environment and flags, in this order."""

from capture_canary.config.document import File
from capture_canary.config.load import Effective, Source, combine, find_config, load
from capture_canary.config.model import Config, Mode
from capture_canary.config.problems import ConfigError, Problem
from capture_canary.config.reload import ConfigFile, Reload
from capture_canary.config.units import Duration, Size

__all__ = [
    "Config",
    "ConfigError",
    "ConfigFile",
    "Duration",
    "Effective",
    "File",
    "Mode",
    "Problem",
    "Reload",
    "Size",
    "Source",
    "combine",
    "find_config",
    "load",
]
