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
    """Become `argv` with the tracer preloaded; ends with a message where that cannot be."""
    if not argv:
        sys.exit("capture-canary exec: no command; write it behind `--`")
    tracer = str(tracer_path())
    if any(character in tracer for character in ": "):
        sys.exit(
            f"capture-canary exec: LD_PRELOAD cannot hold a path with a blank or a colon: {tracer}"
        )
    try:
        os.execvpe(argv[0], list(argv), traced_environment(os.environ, tracer))  # noqa: S606 - the user's command
    except OSError as error:
        sys.exit(f"capture-canary exec: {argv[0]}: {error.strerror}")
