"""Which environment variables are settings, which are not ours, and which are mistakes."""

import re
from collections.abc import Iterator, Mapping

from capture_canary.config.keys import Key, keys
from capture_canary.config.problems import Problems, nearest

PREFIX = "CAPTURE_CANARY_"
CONFIG_VARIABLE = "CAPTURE_CANARY_CONFIG"

OTHERS = frozenset(
    {
        CONFIG_VARIABLE,
        "CAPTURE_CANARY_EMULATE_FAULT",
        "CAPTURE_CANARY_EMULATE_NODE",
        "CAPTURE_CANARY_ENVS",
        "CAPTURE_CANARY_GATE_CACHE",
        "CAPTURE_CANARY_IMAGE",
        "CAPTURE_CANARY_PROBE",
        "CAPTURE_CANARY_TRACE_TIME",
    }
)
"""Variables that other parts read, and that are no settings."""

# What Kubernetes puts into pods beside a Service whose name begins with capture-canary. Exactly its forms, so
# that a mistyped setting is not taken for one of them. None of them has the `__` of nested keys, and a test keeps
# our own top-level keys clear of them.
_SERVICE_LINK = re.compile(
    r"CAPTURE_CANARY(_[A-Z0-9_]+)?"
    r"(_SERVICE_HOST|_SERVICE_PORT(_[A-Z0-9_]+)?|_PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)


def is_service_link(variable: str) -> bool:
    """Tell whether Kubernetes injects variables of this name."""
    return _SERVICE_LINK.fullmatch(variable) is not None


def settings(environ: Mapping[str, str], problems: Problems) -> Iterator[tuple[Key, str, str]]:
    """Yield key, variable and text of each variable that is a setting; note the unknown ones.

    An unknown one is an error, as an unknown key in the file is: a mistyped CAPTURE_CANARY_PAUSED must not go unseen.
    """
    by_variable = {key.variable: key for key in keys().values()}
    for variable in sorted(name for name in environ if name.startswith(PREFIX)):
        key = by_variable.get(variable)
        if key:
            yield key, variable, environ[variable]
        elif variable not in OTHERS and not is_service_link(variable):
            problems.add(variable[:200], f"is no setting{nearest(variable, by_variable)}")
