"""Exit codes (a contract)."""

from capture_canary.model import VerdictName

USAGE = 2
UNKNOWN = 3
_CODES: dict[VerdictName, int] = {"healthy": 0, "mitigated": 0, "degraded": 1, "unknown": UNKNOWN}


def exit_code(verdict: VerdictName) -> int:
    """Return the exit code that says a verdict."""
    return _CODES[verdict]
