import pytest
from hypothesis import given
from hypothesis import strategies as st

from capture_canary.gate.compat import compatible


@pytest.mark.parametrize(
    ("cann", "driver", "matches"),
    [
        ("8.5.0", "25.0.rc1", True),
        ("8.5.2", "26.1.0", True),
        ("8.5.0", "24.1.rc3", False),
        ("9.0.1", "25.0.7", True),
        ("9.1.0", "25.0.7", False),
        ("9.1.0", "25.2.0", True),
        ("9.1.0-beta.1", "25.3.rc1", True),
        ("9.2.0", "25.2.0", False),
        ("9.2.0", "25.3.0", True),
        ("9.1.0", "26.0.RC1", True),
        ("8.3.RC2", "25.2.0", None),
        ("10.0.0", "27.0.0", None),
        (None, "25.2.0", None),
        ("9.1.0", None, None),
        ("9.1.0", "unreleased", None),
    ],
)
def test_the_vendor_s_table(cann: str | None, driver: str | None, matches: object) -> None:
    answer, sentence = compatible(cann, driver)
    assert answer is matches
    assert ("not checked" in sentence) == (matches is None)


@pytest.mark.parametrize(
    ("cann", "oldest", "older"),
    [
        ("8.5.0", "25.0", "24.9999"),
        ("9.0.0", "25.0", "24.9999"),
        ("9.1.0", "25.2", "25.1"),
        ("9.2.0", "25.3", "25.2"),
    ],
)
def test_each_line_of_the_table_begins_with_its_oldest_driver(
    cann: str, oldest: str, older: str
) -> None:
    needs = f"CANN {cann} needs driver {oldest} or newer"
    assert compatible(cann, oldest) == (True, f"{needs}; installed is {oldest}")
    assert compatible(cann, older) == (False, f"{needs}; installed is {older}")


def test_a_line_that_the_table_lacks_is_named() -> None:
    assert compatible("8.3.RC2", "25.2.0")[1] == "the table has no CANN 8.3: not checked"


@given(st.text(), st.text())
def test_any_text_is_a_version_or_unknown(cann: str, driver: str) -> None:
    assert compatible(cann, driver)[0] in {True, False, None}
