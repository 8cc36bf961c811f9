import msgspec
import pytest

from capture_canary.config.model import Config
from capture_canary.gate.latch import LatchState
from capture_canary.gate.model import Check, Decision, Holders, Rules, Snapshot, explain
from capture_canary.service.settings import gate_rules


def test_the_rules_by_default_are_those_of_the_settings() -> None:
    assert Rules() == gate_rules(Config())


def test_nothing_is_known_of_a_node_that_nobody_looked_at() -> None:
    known = msgspec.structs.asdict(Snapshot())
    assert {name for name, value in known.items() if value} == {
        "npus_error",
        "place",
        "sees_all_why",
    }
    assert known["spent_device_seconds"] == 0.0


@pytest.mark.parametrize(
    ("noun", "one"),
    [
        (Rules, Rules()),
        (Snapshot, Snapshot()),
        (LatchState, LatchState()),
        (Holders, Holders(pids={}, complete=True, why="")),
        (Check, Check(name="", ok=None, detail="")),
        (Decision, Decision(allowed=False, reason=None, sentence="", checks=())),
    ],
)
def test_what_a_decision_rests_on_is_told_by_name_and_does_not_change(
    noun: type[msgspec.Struct], one: msgspec.Struct
) -> None:
    first = one.__struct_fields__[0]
    with pytest.raises(AttributeError, match="immutable"):
        setattr(one, first, getattr(one, first))
    with pytest.raises(TypeError, match="positional"):
        noun(*msgspec.structs.astuple(one))


def test_checks_are_explained_line_by_line() -> None:
    checks = (
        Check(name="paused", ok=True, detail="not paused"),
        Check(name="latch", ok=False, detail="2 errors"),
        Check(name="lock", ok=None, detail="not asked"),
    )
    decision = Decision(allowed=False, reason="latched", sentence="No probe now.", checks=checks)
    assert explain(decision).splitlines() == [
        "No probe now.",
        "",
        "yes  paused      not paused",
        "NO   latch       2 errors",
        " -   lock        not asked",
    ]
