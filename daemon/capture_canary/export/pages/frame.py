"""What all pages share: head, banners, foot; and the policy that lets nothing foreign run in them."""

from collections.abc import Sequence

from capture_canary.export import static
from capture_canary.export.api.answers import Status
from capture_canary.report import html, words
from capture_canary.report.charts import Chart

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_REFRESH_SECONDS = 30
"""For browsers without JavaScript; with it, status.js asks more often and redraws only what changed."""


def page(
    status: Status, title: str, body: Sequence[str], plots: Sequence[Chart], *, now: float
) -> str:
    """Return a whole page."""
    version = static.version()
    scripts = "\n".join(
        f'<script src="static/{name}?v={version}" defer></script>' for name in static.SCRIPTS
    )
    styles = "\n".join(
        f'<link rel="stylesheet" href="static/{name}?v={version}">' for name in static.STYLES
    )
    emulated = "EMULATED " if status.emulated else ""
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f'<noscript><meta http-equiv="refresh" content="{_REFRESH_SECONDS}"></noscript>',
            f"<title>{emulated}{html.text(title)}: {html.text(status.node)}</title>",
            f'<link rel="icon" href="static/icon.svg?v={version}" type="image/svg+xml">',
            f"{styles}\n{scripts}</head><body>",
            '<p class="banner alarm" id="stale" hidden>No answer from the daemon: what you see is old.</p>',
            '<main id="page">',
            _header(status, now),
            *banners(status),
            *body,
            html.data("charts", list(plots)),
            "</main>",
            _footer(status),
            "</body></html>\n",
        ]
    )


def banners(status: Status) -> list[str]:
    """Return what must not be overlooked."""
    found: list[tuple[str, str]] = []
    if status.emulated:
        found.append(("emulated", "EMULATED: no word of this is about real hardware."))
    if status.latched:
        found.append(("alarm", f"Probing is latched off on this node: {status.latched}."))
    if status.paused:
        found.append(("note", "Paused: no probe begins until the setting `paused` is false."))
    if status.history_problem:
        found.append(
            (
                "alarm",
                f"The history is only in memory, and lost at a restart: {status.history_problem}.",
            )
        )
    if not status.config_ok:
        found.append(
            (
                "alarm",
                "The settings file cannot be used: those before it are in force (see the log).",
            )
        )
    if status.about_servers is False:
        found.append(
            (
                "alarm",
                "The servers here run another hcomm than we do: our probes say nothing of them.",
            )
        )
    if status.mode == "observe" and not status.emulated:
        found.append(
            (
                "note",
                "Observing: no NPU is opened; verdicts come from servers' traces and logs alone.",
            )
        )
    return [f'<p class="banner {kind}">{html.text(text)}</p>' for kind, text in found]


def _header(status: Status, now: float) -> str:
    return (
        f'<header><h1><a href=".">Capture Canary</a> <span class="node">{html.text(status.node)}</span></h1>'
        f'<span class="quiet">as of {words.moment(now)}</span></header>'
    )


def _footer(status: Status) -> str:
    links = (
        ("explain", "why this verdict"),
        ("api/v1/status", "JSON"),
        ("api/v1/openapi.json", "OpenAPI"),
        ("metrics", "metrics"),
    )
    shown = " · ".join(f'<a href="{where}">{text}</a>' for where, text in links)
    return f'<footer class="quiet">{shown} · version {html.text(status.version)}</footer>'
