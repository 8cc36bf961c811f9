"""CANN's versions in the vendor's order."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capture_canary.stack.versions import Version, at_least, parse

ORDERED = [
    "8.0.RC1",
    "8.0.RC2",
    "8.0.0",
    "8.1.RC1.alpha001",
    "8.1.RC1",
    "8.2.RC1.alpha003",
    "8.2.RC1",
    "8.3.rc1",
    "8.3.RC2",
    "8.3.0",
    "8.5.0.alpha002",
    "8.5.0-beta.1",
    "8.5.0",
    "8.5.1",
    "9.0.0-beta.2",
    "9.0.0",
    "9.0.1",
    "9.1.0-alpha.9",
    "9.1.0-beta.1",
    "9.1.0.beta.2",
    "9.1.0-beta.10",
    "9.1.0-pr.1",
    "9.1.0-pr2405",
    "9.1.0-rc.1",
    "9.1.0",
    "9.2.0-beta",
    "9.2.0-beta.1",
    "10.0.0",
]


def test_order():
    versions = [parse(text) for text in ORDERED]
    assert None not in versions
    for (low, early), (high, late) in itertools.combinations(
        zip(ORDERED, versions, strict=True), 2
    ):
        assert early is not None
        assert late is not None
        assert early < late, (low, high)
        assert not late < early, (low, high)


@pytest.mark.parametrize(
    "spellings",
    [
        ["8.3.RC2", "8.3.rc2", "8.3.0.RC2", " 8.3.RC2\n"],
        [
            "9.1.0-beta.1",
            "9.1.0.beta.1",
            "9.1.0beta1",
            "9.1.0-beta1",
            "9.1.0.BETA.1",
            "9.1.0-beta-01",
        ],
        ["9.1.0", "9.1", "09.01.00", "9.1.0" + " " * 59],
        ["9.1.0-beta", "9.1.0-beta.0"],
        ["8.5.0.alpha002", "8.5.0-alpha.2"],
    ],
)
def test_spellings_of_one_version(spellings):
    assert len({parse(text) for text in spellings}) == 1
    assert parse(spellings[0]) is not None


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "9",
        "V100R001C23SPC002B210",
        "9.1.0-a3-ubuntu22.04",
        "9.2.0_20260930220649",
        "9.1.0.SPC001",
        "9.1.0+local",
        "9.1.0-pre",
        "9.1.0.1",
        "v9.1.0",
        "9.1.0-",
        "-9.1.0",
        "९.१.०",  # noqa: RUF001 - digits, but not ours
        "9.1.0-betaß",
        "9.1.0" + "-beta.1" * 4,
        "9" * 65,
        "9.1.0" + " " * 60,
    ],
)
def test_what_has_no_known_order(text):
    assert parse(text) is None
    assert at_least(text, Version(0, 0, 0, ())) is None


def test_at_least():
    fixed = parse("9.1.0")
    assert fixed is not None
    assert at_least("9.1.0", fixed) is True
    assert at_least("9.2.0-beta.1", fixed) is True
    assert at_least("9.1.0-beta.3", fixed) is False
    assert at_least("9.1.0-pr2405", fixed) is False


STAGES = st.sampled_from([None, "alpha", "beta", "rc"])
PARTS = st.tuples(
    st.integers(0, 99), st.integers(0, 99), st.integers(0, 99), STAGES, st.integers(1, 99)
)


def spell(parts, separator):
    major, minor, patch, stage, number = parts
    return f"{major}.{minor}.{patch}" + (f"{separator}{stage}.{number}" if stage else "")


def vendor_number(parts):
    """The vendor's own formula (aclsysGetVersionNum)."""
    major, minor, patch, stage, number = parts
    weight = {"alpha": 300, "beta": 200, "rc": 100, None: 0}[stage]
    return major * 10_000_000 + minor * 100_000 + patch * 1000 - weight + (number if stage else 0)


@given(PARTS, PARTS, st.sampled_from("-."))
def test_order_is_that_of_the_vendors_numbers(one, other, separator):
    a, b = parse(spell(one, separator)), parse(spell(other, "-"))
    assert a is not None
    assert b is not None
    assert (a < b) == (vendor_number(one) < vendor_number(other))
    assert (a == b) == (vendor_number(one) == vendor_number(other))


@given(st.text(max_size=80) | st.from_regex(r"[0-9]+(\.[0-9a-zA-Z-]+)*", fullmatch=True))
def test_any_text_is_a_version_or_none(text):
    found = parse(text)
    assert found is None or found >= Version(0, 0, 0, ())
