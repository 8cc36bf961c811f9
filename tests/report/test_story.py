"""The story: at most twenty lines, the worst first, nothing invented."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.builders import make_report, make_stack

from capture_canary.model import Fact, VerdictName
from capture_canary.report import words
from capture_canary.report.past import Past, read
from capture_canary.report.story import MAX_LINES, tell
from capture_canary.store import Store, files

NOW = 1_790_000_000.0
DAY = 86400.0


@pytest.fixture
def story_of(tmp_path: Path) -> Callable[[Callable[[Store], None]], list[str]]:
    def make(fill: Callable[[Store], None]) -> list[str]:
        store = Store(tmp_path)
        fill(store)
        store.close()
        return tell(_past(tmp_path), node="node-1", now=NOW)

    return make


def _past(folder: Path) -> Past:
    with closing(files.open_for_reading(folder / files.NAME)) as connection:
        return read(connection, since=0.0, limit=100)


def test_a_degraded_node(story_of: Callable[..., list[str]]):
    def fill(store: Store) -> None:
        store.note_stacks({"a": make_stack("9.1.0")}, at=NOW - 9 * DAY)
        store.note_stacks({"b": make_stack("8.5.0")}, at=NOW - 3 * DAY)
        store.add_probe(make_report("degraded", k=64, emulated=False), at=NOW - 3 * DAY, stack="b")
        store.add_skip("busy", at=NOW - DAY, detail="pid 7 holds NPU 0")

    lines = story_of(fill)
    text = "\n".join(lines)
    assert lines[0].startswith("node-1, ")
    assert "What:    DEGRADED, aicpu_resource_list, since 2026-09-18" in text
    assert "(3 d)" in text
    assert "For:     servers with CANN 8.5.0, SoC a3, driver 25.5.0 (by probe)" in text
    assert "Acts:    whoever builds the serving image" in text
    assert "HCCL_OP_EXPANSION_MODE=AIV" in text
    assert "Changed: CANN 9.1.0 → 8.5.0, 3 d ago" in text
    assert "Skipped: once since" in text
    assert "EMULATED" not in text


def test_an_empty_node_is_unknown(story_of: Callable[..., list[str]]):
    lines = story_of(lambda _store: None)
    assert "Nothing was judged here yet: the verdict is unknown." in lines
    assert "Last:    no probe was made" in lines


def test_unknown_does_not_hide_an_open_degradation(story_of: Callable[..., list[str]]):
    def fill(store: Store) -> None:
        store.add_probe(make_report("degraded"), at=NOW - 5, stack="a")
        store.add_probe(make_report("unknown"), at=NOW - 4, stack="a")

    assert any("it was degraded before" in line for line in story_of(fill))


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    verdicts=st.lists(st.sampled_from(["healthy", "degraded", "mitigated", "unknown"]), max_size=8),
    text=st.text(min_size=1, max_size=300),
)
def test_never_more_than_twenty_lines_the_worst_first(
    verdicts: list[VerdictName], text: str, tmp_path: Path
):
    (tmp_path / files.NAME).unlink(missing_ok=True)
    store = Store(tmp_path)
    stack = {"cann": Fact(value=text, source=text)}
    store.note_stacks({str(number): stack for number in range(len(verdicts))}, at=NOW - 9)
    for number, verdict in enumerate(verdicts):
        store.add_probe(make_report(verdict, reason=text), at=NOW - 5, stack=str(number))
    store.add_skip(text, at=NOW, detail=text)
    store.close()
    lines = tell(_past(tmp_path), node=text, now=NOW)
    assert len(lines) <= MAX_LINES
    assert all(line.isprintable() and len(line) <= 120 for line in lines)
    assert lines[-1].startswith("Next:")
    if "degraded" in verdicts:
        first = next(line for line in lines if line.startswith("What:"))
        assert first.startswith("What:    DEGRADED")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-5, "0 s"), (59, "59 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (3 * DAY, "3 d")],
)
def test_spans(seconds: float, said: str):
    assert words.span(seconds) == said


def test_a_difference_names_what_changed():
    old, new = make_stack("8.5.0", image="sha256:a"), make_stack("9.1.0", image="sha256:b")
    said = words.difference({"a": old}, {"b": new})
    assert said == "CANN 8.5.0 → 9.1.0; image sha256:a → sha256:b"
    assert words.difference({"a": old}, {}).startswith("CANN 8.5.0 → none")
    assert words.difference({"a": old}, {"b": old}) == "same versions, other containers"
    patched = {**old, "hcomm": Fact(value="9.1.0", source="x")}
    assert words.difference({"a": old}, {"a": patched}) == "hcomm 8.5.0 → 9.1.0"
