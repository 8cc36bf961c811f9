"""Durations and sizes as people write them: `6h`, `1h30m`, `2GiB`; in the program plain numbers."""

import re

_UNITS_MS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_UNITS_BYTES = {
    "TiB": 1 << 40,
    "GiB": 1 << 30,
    "MiB": 1 << 20,
    "KiB": 1 << 10,
    "TB": 10**12,
    "GB": 10**9,
    "MB": 10**6,
    "kB": 1000,
    "B": 1,
}
# Whole numbers only, as Prometheus writes durations: what is shown is exactly what was read.
DURATION_PATTERN = r"^([0-9]{1,15}(ms|s|m|h|d|w))+$"
SIZE_PATTERN = r"^[0-9]{1,15}(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)$"
_MAX_TEXT = 64
_MAX_MS = 10**15 - 1
"""31,000 years: up to there the text has no more digits than the pattern, and a float every millisecond."""


class Duration(float):
    """Seconds."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> "Duration":
        """Read `6h` or `1h30m`.

        Raises:
            ValueError: the text is no duration.
        """
        if len(text) > _MAX_TEXT or not re.fullmatch(DURATION_PATTERN, text):
            raise ValueError("not a duration such as 30s or 6h")
        parts = re.findall(r"([0-9]+)([a-z]+)", text)
        milliseconds = sum(int(number) * _UNITS_MS[unit] for number, unit in parts)
        if milliseconds > _MAX_MS:
            raise ValueError("longer than anything lasts")
        return cls(milliseconds / 1000)

    def __str__(self) -> str:
        """Return it as `parse` reads it, in the largest unit that keeps it whole."""
        return _text(round(self * 1000), _UNITS_MS, "0s")


class Size(int):
    """Bytes."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> "Size":
        """Read `2GiB`.

        Raises:
            ValueError: the text is no size.
        """
        if len(text) > _MAX_TEXT or not re.fullmatch(SIZE_PATTERN, text):
            raise ValueError("not a size such as 64MiB or 2GiB")
        number, unit = re.findall(r"([0-9]+)([A-Za-z]+)", text)[0]
        return cls(int(number) * _UNITS_BYTES[unit])

    def __str__(self) -> str:
        """Return it as `parse` reads it, in the largest unit that keeps it whole."""
        return _text(int(self), _UNITS_BYTES, "0B")


def _text(number: int, units: dict[str, int], nothing: str) -> str:
    for unit, scale in units.items():
        if number and number % scale == 0:
            return f"{number // scale}{unit}"
    return nothing
