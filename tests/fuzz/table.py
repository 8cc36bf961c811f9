"""All targets, by name."""

from tests.fuzz.target import Target
from tests.fuzz.targets import (
    files,
    history,
    http,
    logs,
    messages,
    network,
    npus,
    pages,
    proc,
    trace,
    words,
)

MODULES = (trace, messages, logs, proc, npus, files, network, http, history, pages, words)
TARGETS: dict[str, Target] = {one.name: one for module in MODULES for one in module.TARGETS}
