"""Become a command with the tracer preloaded: in front of whatever LD_PRELOAD already holds."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn

from capture_canary.native import tracer_path

TRACE_DIR: Final = "CAPTURE_CANARY_TRACE_DIR"
DEFAULT_TRACE_DIR: Final = "/run/capture-canary/traces"


def traced_environment(base: Mapping[str, str], tracer: str) -> dict[str, str]:
    """Return an environment in which commands are traced."""
    before = base.get("LD_PRELOAD", "").replace(":", " ").split()
    others = [library for library in before if library != tracer]
    return {
        **base,
        "LD_PRELOAD": ":".join([tracer, *others]),
        TRACE_DIR: base.get(TRACE_DIR) or DEFAULT_TRACE_DIR,
    }


def run(argv: Sequence[str]) -> NoReturn:
    """Become `argv` with the tracer preloaded; ends with a message, and a shell's exit code, where that cannot be."""
    if not argv or not argv[0]:
        _end(2, "no command; write it behind `--`")
    tracer = str(tracer_path())
    if any(character in tracer for character in ": "):
        _end(2, f"LD_PRELOAD cannot hold a path with a blank or a colon: {tracer}")
    try:
        os.execvpe(argv[0], list(argv), traced_environment(os.environ, tracer))  # noqa: S606 - the user's command
    except FileNotFoundError:
        _end(127, f"{argv[0]}: not found")
    except OSError as error:
        _end(126, f"{argv[0]}: {error.strerror}")


def _end(code: int, reason: str) -> NoReturn:
    sys.stderr.write(f"capture-canary exec: {reason}\n")
    sys.exit(code)
