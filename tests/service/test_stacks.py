"""Several stacks on a node, that come and go: each has its verdict, and the history says when it left."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests import builders
from tests.service.traced import OWN, Node, name

from capture_canary.export.metrics import StateCollector
from capture_canary.export.source import standings
from capture_canary.service.traces import MAX_FURTHER
from capture_canary.stack.identity import stack_id
from capture_canary.stack.servers import Servers


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    made.traces.close()
    made.store.close()


def test_each_stack_has_its_verdict(node: Node):
    node.trace("8.5.0", copies=25)
    node.trace("9.0.0", copies=0, number=2)
    node.look()

    found = node.exported("verdict")
    assert found[name("8.5.0")] == ["degraded"]
    assert name("9.0.0") in found
    assert node.exported("verdict_settled_info")[name("8.5.0")] == ["degraded"]
    assert {one.stack for one in standings(node.board.view, node.store.present())} == {*found}


def test_stack_that_left_is_gone_from_metrics_and_closed_in_the_history(node: Node):
    old = node.trace("8.5.0", copies=25)
    node.trace("9.0.0", copies=25, number=2)
    node.look()
    assert {one.stack for one in node.store.open_degradations()} == {name("8.5.0"), name("9.0.0")}

    old.unlink()
    node.look()

    assert {*node.exported("verdict")} == {name("9.0.0")}
    assert {one.stack for one in node.store.open_degradations()} == {name("9.0.0")}
    (gone,) = [one for one in node.store.changes() if one.retired]
    assert (gone.stack, gone.reason) == (name("8.5.0"), "no traced process runs it any more")


def test_without_any_trace_it_is_unknown_again(node: Node):
    path = node.trace("8.5.0", copies=25)
    node.look()
    path.unlink()

    node.look()

    assert node.exported("verdict") == {stack_id(OWN): ["unknown"]}
    assert node.exported("verdict_settled_info") == {}
    assert node.store.open_degradations() == []


def test_one_that_comes_back_is_judged_and_remembered_again(node: Node):
    for _ in range(2):
        path = node.trace("8.5.0", copies=25)
        node.look()
        path.unlink()
        node.look()

    retired = [one.retired for one in node.store.changes()]
    assert retired == [True, False, True, False]


def test_odd_load_of_one_stack_clears_no_alert_of_another(node: Node):
    """What is settled belongs to its stack, whichever of them is the worst at the moment."""
    first = node.trace("8.5.0", copies=25)
    node.look()
    node.trace("9.0.0", copies=25, number=2)
    node.look()
    first.unlink()
    node.trace("8.5.0", copies=25, captures=1, number=3)  # begun again: not enough to judge
    node.look()

    assert node.exported("verdict")[name("8.5.0")] == ["unknown"]
    assert node.exported("verdict_settled_info") == {
        name("8.5.0"): ["degraded"],
        name("9.0.0"): ["degraded"],
    }


def test_ever_new_stacks_make_few_series(node: Node):
    for number in range(1, 20):
        node.trace(f"8.5.{number}", copies=25, number=number)
    state = node.look()

    assert len(state.judged) == 1 + MAX_FURTHER
    count = sum(len(family.samples) for family in StateCollector(lambda: state).collect())
    assert count <= 150


def test_all_stacks_on_the_node_are_noted_once(node: Node):
    node.trace("8.5.0", copies=25)
    node.look()
    assert node.store.stacks() == []  # servers were not looked for yet

    node.board.state(lambda state: msgspec.structs.replace(state, servers=Servers(looked_at=9)))
    for _ in range(3):
        node.look()
        node.board.state(
            lambda state: state.after(builders.make_report(stack=OWN), evidence="probe", ended=1.0)
        )
    (noted,) = node.store.stacks()
    assert {*noted.stacks} == {stack_id(OWN), name("8.5.0")}


def test_worst_mode_of_a_stack_is_its_verdict(node: Node):
    node.trace("8.5.0", copies=0, mode=b"AIV")
    node.trace("8.5.0", copies=25, number=2)
    node.look()

    assert node.exported("verdict") == {name("8.5.0"): ["degraded"]}
