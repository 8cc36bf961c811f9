"""What is known of a stack before anything is measured."""

import pytest

from capture_canary.stack.exposure import (
    DEFAULT_MODES,
    default_mode,
    effective_mode,
    exposure,
    family,
    mitigates,
)


@pytest.mark.parametrize(
    ("soc", "wanted"),
    [
        ("Ascend910_9391", "a3"),
        ("Ascend910_9362", "a3"),
        ("a3", "a3"),
        ("910C", "a3"),
        ("Ascend 910C", "a3"),
        ("Atlas 800T A3", "a3"),
        ("Ascend910B1", "a2"),
        ("Ascend910B2C", "a2"),
        ("Ascend910B4-1", "a2"),
        ("910B3", "a2"),
        ("910b3", "a2"),
        ("A2", "a2"),
        ("Ascend910B", "910a"),
        ("Ascend910ProB", "910a"),
        ("Ascend910PremiumA", "910a"),
        ("Ascend310P3", "310p"),
        ("310P", "310p"),
        ("Ascend950PR_9589", "950"),
        ("Ascend910_9599", "950"),
        ("950", "950"),
        ("a5", "950"),
        ("Ascend310B1", None),
        ("Ascend910", None),
        ("Ascend910_9", None),
        ("H100", None),
        ("", None),
        (None, None),
        ("Ascend910B1\nx", None),
        ("Ascend950" + "0" * 55, "950"),
        ("Ascend950" + "0" * 56, None),
    ],
)
def test_family(soc, wanted):
    assert family(soc) == wanted


@pytest.mark.parametrize(
    ("soc", "hcomm", "mode", "exposed", "words"),
    [
        ("a3", "8.5.0", None, True, "lacks the fix of 9.1.0"),
        ("a3", "8.5.0.alpha002", None, True, "A3 unfolds"),
        ("a3", "9.0.0", "AIV", True, "lacks"),
        ("a3", "9.1.0-beta.1", None, True, "lacks"),
        ("a3", "9.1.0-pr2405", None, True, "lacks"),
        ("a3", "9.1.0-rc.1", None, True, "lacks"),
        ("a3", "9.1.0", None, False, "has the fix"),
        ("a3", "9.2.0-beta.1", None, False, "has the fix"),
        ("a3", "8.3.RC2", None, None, "older than what was analysed"),
        ("a3", "8.4.0", None, None, "older than what was analysed"),
        ("a3", None, None, None, "none found"),
        ("a3", "V100R001", None, None, "V100R001"),
        ("a2", "8.5.0", None, False, "A2 does not"),
        ("a2", "8.5.0", "AIV", False, "A2 does not"),
        ("a2", "8.5.0", "AI_CPU", True, "AllGather and AlltoAll"),
        ("a2", "9.1.0", "AI_CPU", False, "has the fix"),
        ("310P3", "8.5.0", "AI_CPU", False, "310P"),
        ("Ascend910A", "8.5.0", None, False, "910A"),
        ("950", "8.5.0", None, None, "not analysed"),
        ("950", "9.1.0", None, None, "not analysed"),
        (None, "8.5.0", None, None, "no name found"),
        ("H100", "9.1.0", None, None, "H100"),
    ],
)
def test_exposure(soc, hcomm, mode, exposed, words):
    found = exposure(soc=soc, hcomm=hcomm, mode=mode)
    assert found.exposed is exposed
    assert words in found.reason


@pytest.mark.parametrize(
    ("mode", "soc", "wanted"),
    [
        (None, "a3", "AI_CPU"),
        ("", "a3", "AI_CPU"),
        ("AIV", "a3", "AIV"),
        ("HOST", "a3", "HOST"),
        ("HOST_TS", "a3", "AI_CPU"),
        ("CCU_MS", "a3", "AI_CPU"),
        ("HOST_TS", "a2", "HOST_TS"),
        ("AICPU_CacheDisable", "a2", "HOST"),
        ("AIV", "310P", "HOST"),
        (None, "950", "AICPU_TS"),
        ("CCU_SCHED", "950", "CCU_SCHED"),
        (None, "Ascend910A", None),
        (None, None, None),
        ("AIV", None, "AIV"),
    ],
)
def test_mode_in_force(mode, soc, wanted):
    assert effective_mode(mode, soc) == wanted


def test_modes_that_keep_off_the_aicpu():
    assert [mitigates(mode) for mode in ("AIV", "HOST", "HOST_TS")] == [True] * 3
    assert [mitigates(m) for m in ("AI_CPU", "AICPU_CacheDisable", "AICPU_TS", "", None)] == [
        False
    ] * 5


def test_every_family_has_a_default():
    assert default_mode("a2") == "HOST"
    assert set(DEFAULT_MODES) == {"a2", "a3", "950", "310p", "910a"}
