"""How values are kept: JSON, and reports compressed."""

import zlib
from typing import TypeVar

import msgspec

from capture_canary import foreign
from capture_canary.model import Report

T = TypeVar("T")

MAX_REPORT_BYTES = 32 * 1024 * 1024
"""A damaged report must not unfold without bound."""


def pack(report: Report) -> bytes:
    """Return a report as it is kept: a seventh of its JSON, measured on eight-series probes."""
    return zlib.compress(encode(report), 6)


def unpack(packed: object) -> Report | None:
    """Return a report that was kept, None where it is missing, damaged or too large."""
    if not isinstance(packed, bytes):
        return None
    opened = zlib.decompressobj()
    try:
        text = opened.decompress(packed, MAX_REPORT_BYTES)
        if not opened.eof:
            return None
        return foreign.decode(text, Report)
    except (zlib.error, ValueError):
        return None


def decode(text: object, kind: type[T]) -> T | None:
    """Return a value that was kept, None where it is damaged or of another kind."""
    if not isinstance(text, (bytes, str)):
        return None
    try:
        return foreign.decode(text, kind)
    except ValueError:
        return None


def encode(value: object) -> bytes:
    """Return JSON that compares equal for equal values."""
    try:
        return msgspec.json.encode(value, order="deterministic")
    except UnicodeEncodeError:
        return msgspec.json.encode(_whole(msgspec.to_builtins(value)), order="deterministic")


def _whole(value: object) -> object:
    """Replace the halves of characters that odd bytes in a path or a log leave."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value
