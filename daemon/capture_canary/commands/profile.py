"""`capture-canary profile`: copies and their share of time, from a profile of msprof or torch-npu."""

import argparse
import sys
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from capture_canary.exits import USAGE
from capture_canary.profiles.statistic import COPIES, Profile, ProfileError, find, read


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "path", type=Path, metavar="FILE|DIR", help="api_statistic_*.csv, or a folder that has some"
    )


def run(args: argparse.Namespace) -> int:
    """Show it; 0, or 2 where there is no profile."""
    try:
        profiles = [read(path) for path in find(args.path)]
    except (ProfileError, OSError) as error:
        sys.stderr.write(f"capture-canary profile: {error}\n")
        return USAGE
    Console().print(_table(profiles))
    return 0


def _table(profiles: list[Profile]) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        caption=(
            "Copies of all directions: a profile does not tell them apart. A stack that grows makes more with every "
            "capture: two profiles, of an early and a late load in one process, show it."
        ),
        caption_justify="left",
    )
    table.add_column("file", overflow="fold")
    for heading in ("level", "function"):
        table.add_column(heading, no_wrap=True)
    for heading in ("copies", "s in copies", "of the level's time", "captures", "copies a capture"):
        table.add_column(heading, justify="right")
    for profile in profiles:
        for one in profile.levels:
            per = f"{one.copies / profile.captures:,.1f}" if profile.captures else "?"
            table.add_row(
                Text(str(profile.path)),
                one.level,
                COPIES[one.level],
                f"{one.copies:,}",
                f"{one.seconds:.6f}",
                "?" if one.share is None else f"{one.share:.1%}",
                str(profile.captures or "?"),
                per,
            )
    return table
