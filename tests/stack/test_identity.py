"""The short name of a stack."""

from capture_canary.model import Fact
from capture_canary.stack.identity import PARTS, stack_id


def facts(**values):
    return {name: Fact(value=value, source="a file") for name, value in values.items()}


def test_name_is_stable_across_releases():
    assert stack_id(facts(cann="8.5.0", hcomm="8.5.0", soc="a3")) == "3f6d63159827"
    assert stack_id({}) == "e3b0c44298fc"


def test_name_depends_on_versions_only():
    one = facts(cann="8.5.0", hcomm="8.5.0")
    other = {name: Fact(value="8.5.0", source="a call") for name in ("hcomm", "cann")}
    assert stack_id(one) == stack_id(other)
    assert stack_id(one) == stack_id(one | facts(driver=None, hostname="node1"))


def test_every_part_tells_stacks_apart():
    names = {stack_id(facts(**{name: "1"})) for name in PARTS}
    assert len(names) == len(PARTS)


def test_a_soc_has_one_name_whoever_tells_it():
    assert stack_id(facts(soc="Ascend910_9391")) == stack_id(facts(soc="a3"))
    assert stack_id(facts(soc="910C")) != stack_id(facts(soc="910B1"))
    assert stack_id(facts(soc="H100")) != stack_id(facts(soc="H200"))


def test_what_is_no_soc_is_told_by_its_own_name():
    assert stack_id(facts(image="910C")) != stack_id(facts(image="a3"))
