"""CANN's own logs of the serving processes: the last of them, by the PID in their names."""

import re
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

from capture_canary.stack.inside import Root

FOLDERS = ("ascend/log/run/plog", "ascend/log/debug/plog")
MAX_BYTES = 16 << 20
"""Read of one file: CANN begins a new one at 20 MB."""
MAX_FILES = 64

_NAME = re.compile(r"plog-(?:pid_)?(\d{1,10})_(\d{1,20})\.log", re.ASCII)
_TIME = re.compile(r":(\d{4}-\d{2}-\d{2}-\d{2}:\d{2}:\d{2})\.")


def plogs(
    root: Path, homes: list[str], pids: set[int] | None, window: timedelta
) -> Iterator[tuple[str, str]]:
    """Yield name and text of each plog of some processes, the lines of the newest `window` only.

    Args:
        root: where paths begin, `/proc/PID/root` for another container's.
        homes: home folders to look in.
        pids: as the processes number themselves; None: all.
        window: back from a file's own last line.
    """
    found = 0
    with closing(Root(root)) as inside:
        for folder in (f"{home}/{name}" for home in homes for name in FOLDERS):
            try:
                names = inside.list(folder)
            except OSError:
                continue
            for name in reversed(names):
                match = _NAME.fullmatch(name)
                if match and (pids is None or int(match[1]) in pids) and found < MAX_FILES:
                    found += 1
                    kind = folder.split("/")[-2]
                    yield f"{kind}/{name}", _last(inside, f"{folder}/{name}", window)


def _last(root: Root, path: str, window: timedelta) -> str:
    try:
        text = root.read(path, MAX_BYTES).decode("utf-8", "replace")
    except OSError as error:
        return f"it could not be read: {error}\n"
    return newest(text, window)


def newest(text: str, window: timedelta) -> str:
    """Return the lines from `window` before the last time in it; all of them where no line has a time."""
    lines = text.splitlines(keepends=True)
    times = [_time(line) for line in lines]
    known = [moment for moment in times if moment]
    if not known:
        return text
    begin = max(known) - window
    first = next((n for n, moment in enumerate(times) if moment and moment >= begin), 0)
    return "".join(lines[first:])


def _time(line: str) -> datetime | None:
    match = _TIME.search(line[:256])
    try:
        return datetime.strptime(match[1], "%Y-%m-%d-%H:%M:%S") if match else None  # noqa: DTZ007  # a log's own clock
    except ValueError:
        return None
