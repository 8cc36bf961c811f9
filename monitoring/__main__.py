"""Writes what is made from this code: `python -m monitoring [--check]`."""

import sys
from pathlib import Path

from monitoring.dashboards.fleet import fleet
from monitoring.dashboards.node import node
from monitoring.dashboards.panels import dashboard
from monitoring.render import document, text

ROOT = Path(__file__).parents[1]


def files() -> dict[Path, str]:
    """Return every file that is made, with its content."""
    rules = text(document())
    chart = ROOT / "helm" / "capture-canary" / "files"
    found = {
        ROOT / "rules" / "capture-canary.yml": rules,
        chart / "rules.yaml": rules,
    }
    for board in (fleet(), node()):
        name, content = dashboard(board)
        found |= {ROOT / "grafana" / name: content, chart / "dashboards" / name: content}
    return found


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
