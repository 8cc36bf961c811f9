"""Where files are: the system's folders for root, the XDG base directories without privilege."""

from collections.abc import Mapping
from pathlib import Path

NAME = "capture-canary"
SYSTEM_CONFIG = Path("/etc") / NAME / "config.yaml"


def default_config(environ: Mapping[str, str], *, privileged: bool) -> Path | None:
    """Return the configuration file that is used where none is named; None: there is none."""
    home = _base(environ, "XDG_CONFIG_HOME", ".config")
    candidates = [SYSTEM_CONFIG]
    if not privileged and home:
        candidates.insert(0, home / NAME / "config.yaml")
    return next((path for path in candidates if _exists(path)), None)


def default_folders(environ: Mapping[str, str], *, privileged: bool) -> dict[str, str]:
    """Return the defaults by key that differ without privilege; none where no home is known."""
    state = _base(environ, "XDG_STATE_HOME", ".local/state")
    if privileged or not state:
        return {}
    run = _absolute(environ.get("XDG_RUNTIME_DIR"))
    passing = run / NAME if run else state / NAME / "run"
    return {
        "state_dir": str(state / NAME),
        "trace_dir": str(passing / "traces"),
        "lock_file": str(passing / "probe.lock"),
    }


def _base(environ: Mapping[str, str], variable: str, below_home: str) -> Path | None:
    named, home = _absolute(environ.get(variable)), _absolute(environ.get("HOME"))
    return named or (home / below_home if home else None)


def _absolute(text: str | None) -> Path | None:
    # The XDG specification has relative paths ignored.
    return Path(text) if text and text.startswith("/") else None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return True  # not ours to read: opening it says so, silence would not
