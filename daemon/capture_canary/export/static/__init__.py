"""Files that pages are made of: style, charts, and the vendored uPlot; none is fetched from anywhere."""

import hashlib
from functools import cache
from pathlib import Path

STYLES = ("uplot/uPlot.min.css", "canary.css")
SCRIPTS = ("uplot/uPlot.iife.min.js", "charts.js", "status.js")
"""Of the pages; a report has the first two, and starts them itself."""
FILES = {
    **dict.fromkeys(STYLES, "text/css"),
    **dict.fromkeys(SCRIPTS, "text/javascript"),
    "icon.svg": "image/svg+xml",
}
"""What the daemon serves under static/, with its media type."""


@cache
def version() -> str:
    """Return what changes when one of the files does: browsers may keep them until then."""
    return hashlib.sha256("".join(text(name) for name in FILES).encode()).hexdigest()[:12]


@cache
def text(name: str) -> str:
    """Return one of the files, e.g. `charts.js`."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def styles() -> str:
    """Return all styles."""
    return "".join(text(name) for name in STYLES)


def scripts() -> tuple[str, str]:
    """Return the plotting library and what draws our charts with it."""
    return text(SCRIPTS[0]), text(SCRIPTS[1])
