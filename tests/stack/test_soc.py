"""The SoC from npu-smi's table."""

from pathlib import Path

import pytest

from capture_canary.stack.exposure import family
from capture_canary.stack.npu_smi import parse
from capture_canary.stack.soc import soc_of

TABLES = Path(__file__).parent.parent / "data" / "npu-smi"


@pytest.mark.parametrize(
    ("table", "expected"),
    [("a2-idle.txt", "a2"), ("a3-one-npu-busy.txt", "a3"), ("950-one-busy.txt", "950")],
)
def test_family_by_table(table: str, expected: str):
    fact = soc_of(parse((TABLES / table).read_text()))

    assert expected == family(fact.value)


def test_plain_name_with_one_chip_is_not_guessed():
    text = (TABLES / "a2-idle.txt").read_text().replace("910B3    ", "Ascend910")

    assert soc_of(parse(text)).value is None


def test_two_names_are_not_guessed():
    text = (TABLES / "a2-idle.txt").read_text().replace("910B3", "910B1", 1)

    assert soc_of(parse(text)).value is None
