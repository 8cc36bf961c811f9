"""Writes what is made from this code: `python -m monitoring [--check]`."""

import sys
from pathlib import Path

from monitoring.render import document, text

ROOT = Path(__file__).parents[1]


def files() -> dict[Path, str]:
    """Return every file that is made, with its content."""
    rules = text(document())
    return {
        ROOT / "rules" / "capture-canary.yml": rules,
        ROOT / "helm" / "capture-canary" / "files" / "rules.yaml": rules,
    }


def main() -> None:
    """Write them, or with `--check` name those that differ and fail."""
    stale = [p for p, content in files().items() if not p.exists() or p.read_text() != content]
    if sys.argv[1:] == ["--check"]:
        sys.exit("\n".join(f"{path}: run python -m monitoring" for path in stale) or None)
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files()[path])


if __name__ == "__main__":
    main()
