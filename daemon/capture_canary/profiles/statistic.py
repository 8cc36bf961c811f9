"""Read `api_statistic_*.csv`, which msprof and torch-npu's profiler write: calls and their time, by level and function.

Columns as MindStudio's manual has them: Device_id, Level, API Name, Time(us), Count, Avg(us), … Anybody may have
written the file.
"""

import csv
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

PATTERN = "api_statistic*.csv"
MAX_BYTES = 64 << 20
MAX_ROWS = 200_000
MAX_FIELD = 4096
MAX_FILES = 256
MAX_DEPTH = 8
COLUMNS = {"level": "Level", "name": "API Name", "time": "Time(us)", "count": "Count"}
COPIES = {"runtime": "MemCopySync", "acl": "aclrtMemcpy"}
"""The synchronous copy, H2D and others, by level: rtMemcpy in CANN's own words, and what calls it."""
CAPTURE_END = "aclmdlRICaptureEnd"
LIMIT = 1e15


class ProfileError(ValueError):
    """No profile, or one that cannot be read; the message names file and line."""


class Level(NamedTuple):
    """What one file says of copies at one level."""

    level: str
    copies: int
    seconds: float
    """In copies."""
    total_seconds: float
    """In all functions of the level, nested ones each for themselves."""

    @property
    def share(self) -> float | None:
        """Share of the level's time that copies took."""
        return self.seconds / self.total_seconds if self.total_seconds else None


class Profile(NamedTuple):
    """What one file says."""

    path: Path
    levels: list[Level]
    captures: int
    """Graph captures that ended while it was made; 0: none, or the profiler does not name them."""


def find(path: Path) -> list[Path]:
    """Return the files to read: the one given, or those of their name below a folder.

    Raises:
        ProfileError: there is none, or more than anybody would look at.
    """
    if not path.is_dir():
        return [path]
    found = []
    for folder, folders, _ in os.walk(path):
        if len(Path(folder).relative_to(path).parts) >= MAX_DEPTH:
            folders.clear()
        found += sorted(Path(folder).glob(PATTERN))
        if len(found) > MAX_FILES:
            raise ProfileError(f"{path}: more than {MAX_FILES} files called {PATTERN}; name one")
    if not found:
        raise ProfileError(
            f"{path}: no {PATTERN} below it. msprof writes one with --ascendcl=on, and rows of the runtime with "
            "--runtime-api=on; torch-npu's profiler from Level1 on, and those rows from Level2 on"
        )
    return sorted(found)


def read(path: Path) -> Profile:
    """Return what a file says.

    Raises:
        ProfileError: it is none of these, is too large, or a line of it is broken.
        OSError: it cannot be opened.
    """
    copies: dict[str, tuple[int, float]] = {}
    totals: dict[str, float] = {}
    captures = 0
    for level, name, seconds, count in _rows(path):
        totals[level] = totals.get(level, 0.0) + seconds
        if name == COPIES.get(level):
            before = copies.get(level, (0, 0.0))
            copies[level] = (before[0] + count, before[1] + seconds)
        if name == CAPTURE_END:
            captures += count
    levels = [
        Level(level, *copies.get(level, (0, 0.0)), totals[level])
        for level in COPIES
        if level in totals
    ]
    if not levels:
        raise ProfileError(
            f"{path}: no rows of level {' or '.join(COPIES)}; see msprof's --ascendcl and --runtime-api"
        )
    return Profile(path, levels, captures)


def _rows(path: Path) -> Iterator[tuple[str, str, float, int]]:
    """Yield level, function, seconds and calls of each row."""
    if not path.is_file():
        raise ProfileError(f"{path}: not a file")
    if path.stat().st_size > MAX_BYTES:
        raise ProfileError(f"{path}: larger than {MAX_BYTES >> 20} MiB, which no such table is")
    csv.field_size_limit(MAX_FIELD)
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as opened:
        lines = csv.reader(opened)
        try:
            places = _places(path, next(lines, []))
            for number, line in enumerate(lines, 2):
                if number > MAX_ROWS:
                    raise ProfileError(f"{path}: more than {MAX_ROWS} rows")
                if line:
                    yield _row(f"{path}:{number}", line, places)
        except csv.Error as error:
            raise ProfileError(f"{path}:{lines.line_num}: {error}") from error


def _places(path: Path, heading: Sequence[str]) -> dict[str, int]:
    names = [name.strip().lower() for name in heading]
    places = {}
    for key, column in COLUMNS.items():
        if column.lower() not in names:
            raise ProfileError(f"{path}:1: no column {column!r}, so no {PATTERN}")
        places[key] = names.index(column.lower())
    return places


def _row(where: str, line: Sequence[str], places: dict[str, int]) -> tuple[str, str, float, int]:
    if len(line) <= max(places.values()):
        raise ProfileError(f"{where}: {len(line)} fields are too few")
    texts = {key: line[place].strip() for key, place in places.items()}
    microseconds, count = (_number(where, COLUMNS[key], texts[key]) for key in ("time", "count"))
    return texts["level"].lower(), texts["name"], microseconds / 1e6, int(count)


def _number(where: str, column: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < LIMIT:
        raise ProfileError(f"{where}: {column} is {text[:40]!r}, which is no amount")
    return value
