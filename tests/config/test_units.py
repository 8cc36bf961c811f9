"""Durations and sizes: what is shown is what was read."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capture_canary.config.units import Duration, Size


@pytest.mark.parametrize(
    ("text", "seconds", "shown"),
    [
        ("6h", 21600, "6h"),
        ("1h30m", 5400, "90m"),
        ("30s", 30, "30s"),
        ("250ms", 0.25, "250ms"),
        ("24h", 86400, "1d"),
        ("0s", 0, "0s"),
    ],
)
def test_duration_is_read_and_shown(text: str, seconds: float, shown: str):
    duration = Duration.parse(text)
    assert duration == seconds
    assert str(duration) == f"{duration}" == shown


@pytest.mark.parametrize(
    ("text", "size", "shown"),
    [("2GiB", 2 << 30, "2GiB"), ("1500MB", 1_500_000_000, "1500MB"), ("0B", 0, "0B")],
)
def test_size_is_read_and_shown(text: str, size: int, shown: str):
    assert Size.parse(text) == size
    assert str(Size.parse(text)) == shown


@pytest.mark.parametrize(
    "text", ["", "6", "h", "6 h", "-6h", "1.5h", "6H", "\uff16h", "6h\n", "1h" * 40]
)
def test_what_is_no_duration_is_refused(text: str):
    with pytest.raises(ValueError, match="not a duration"):
        Duration.parse(text)


@pytest.mark.parametrize("text", ["", "2", "2G", "2Gi", "2gib", "1.5GiB", "-1B", "1B1B", "2GiB\n"])
def test_what_is_no_size_is_refused(text: str):
    with pytest.raises(ValueError, match="not a size"):
        Size.parse(text)


@settings(deadline=None)
@given(st.integers(min_value=0, max_value=10**12))
def test_duration_survives_being_shown(milliseconds: int):
    duration = Duration(milliseconds / 1000)
    assert Duration.parse(str(duration)) == duration


@settings(deadline=None)
@given(st.integers(min_value=0, max_value=10**14))
def test_size_survives_being_shown(size: int):
    assert Size.parse(str(Size(size))) == size
