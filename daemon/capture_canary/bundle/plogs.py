"""CANN's own logs: `~/ascend/log/{run,debug}/plog/plog-PID_TIME.log`, the PID as the process numbers itself."""

import re
from collections.abc import Callable, Iterator
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
    root: Path, homes: list[str], wanted: Callable[[int], bool], window: timedelta
) -> Iterator[tuple[str, str]]:
    """Yield name and text of the newest plogs of some processes, the lines of the newest `window` only.

    Args:
        root: where paths begin, `/proc/PID/root` for another container's.
        homes: home folders to look in.
        wanted: whose, by the PID in a file's name.
        window: back from a file's own last line.
    """
    found = 0
    with closing(Root(root)) as inside:
        for folder in (f"{home}/{name}" for home in homes for name in FOLDERS):
            try:
                names = inside.list(folder)
            except OSError:
                continue
            matches = [match for match in map(_NAME.fullmatch, names) if match]
            ours = [match for match in matches if wanted(int(match[1]))]
            for match in sorted(ours, key=lambda match: int(match[2]), reverse=True):
                if found < MAX_FILES:
                    found += 1
                    kind = folder.split("/")[-2]
                    yield f"{kind}/{match[0]}", _last(inside, f"{folder}/{match[0]}", window)


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
    last = max(known)
    first = next((n for n, moment in enumerate(times) if moment and last - moment <= window), 0)
    return "".join(lines[first:])


def _time(line: str) -> datetime | None:
    match = _TIME.search(line[:256])
    try:
        return datetime.strptime(match[1], "%Y-%m-%d-%H:%M:%S") if match else None  # noqa: DTZ007  # a log's own clock
    except ValueError:
        return None
