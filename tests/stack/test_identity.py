"""The short name of a stack."""

from capture_canary.model import Fact
from capture_canary.stack.identity import PARTS, completed, stack_id


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


def test_who_learnt_less_is_no_other_stack():
    known = facts(cann="8.5.0", hcomm="8.5.0", soc="Ascend910_9391", driver=None)
    for less in (facts(), facts(cann="8.5.0"), facts(hcomm="8.5.0", soc="a3"), facts(soc=None)):
        assert stack_id(completed(less, known)) == stack_id(known)
    told = facts(cann="8.5.0", vllm="0.23.0")
    assert completed(told, known)["vllm"].value == "0.23.0"
    assert completed(known, {}) == known


def test_who_learnt_something_else_is():
    known = facts(cann="8.5.0", hcomm="8.5.0", soc="a3")
    for other in (facts(cann="9.1.0"), facts(cann="8.5.0", hcomm="9.1.0"), facts(soc="a2")):
        assert completed(other, known) == other
