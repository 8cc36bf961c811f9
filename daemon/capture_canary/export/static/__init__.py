"""Files that pages are made of: style, charts, and the vendored uPlot; none is fetched from anywhere."""

from functools import cache
from pathlib import Path


@cache
def text(name: str) -> str:
    """Return one of the files, e.g. `charts.js`."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def styles() -> str:
    """Return all styles."""
    return text("uplot/uPlot.min.css") + text("canary.css")


def scripts() -> tuple[str, str]:
    """Return the plotting library and what draws our charts with it."""
    return text("uplot/uPlot.iife.min.js"), text("charts.js")
