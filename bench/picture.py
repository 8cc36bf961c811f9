"""Draws the README's picture, docs/images/probe.svg: what a probe of an emulated A3 with CANN 8.5.0 prints."""

import os
import re
from pathlib import Path

from rich.console import Console

from capture_canary import terminal
from capture_canary.probe.base import base_environment
from capture_canary.probe.measure import Probe, ProbeSettings

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "probe.svg"
WIDTH = 122


def main() -> None:
    """Probe and draw."""
    base = base_environment(os.environ, "cann=8.5.0,soc=a3")
    report = Probe(ProbeSettings(rounds=8), base, emulated=True, observe=lambda _event: None).run()
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        terminal.show(console, report)
        svg = console.export_svg(
            title="capture-canary probe --emulate cann=8.5.0,soc=a3 --rounds 8"
        )
    # Its fonts would come from elsewhere; a reader's own monospace font does.
    svg = re.sub(r"@font-face\s*{[^}]*}", "", svg)
    PICTURE.write_text(svg)
    print(f"{PICTURE.name}: {report.verdict} ({report.cause})")


if __name__ == "__main__":
    main()
