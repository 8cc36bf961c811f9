from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capture_canary.logs.evidence import FileEvidence, LogEvidence, Run, slopes
from capture_canary.logs.parse import Bar, Exhaustion, Finish


def bars(seconds: Iterable[float], total: int, mode: str = "FULL") -> list[Bar]:
    """The states of a bar whose graphs took that long."""
    states, gone = [Bar("decode", mode, 0, total, 0)], 0.0
    for n, each in enumerate(seconds, 1):
        gone += each
        states.append(Bar("decode", mode, n, total, int(gone)))
    return states


def seen(*states: Bar) -> FileEvidence:
    evidence = FileEvidence()
    for state in states:
        evidence.add(state)
    return evidence


def test_a_rise_is_a_suspicion_and_never_more() -> None:
    evidence = seen(*bars((1 + 0.1 * n for n in range(25)), 25))
    judgement = evidence.judge()
    assert (judgement.verdict, judgement.cause) == ("unknown", "suspect")
    assert "slow down" in judgement.reason


@given(
    st.floats(0.01, 5),
    st.integers(4, 60),
    st.lists(st.floats(0, 0.4), min_size=60, max_size=60),
)
def test_a_steady_load_is_never_suspect(each: float, total: int, noise: Sequence[float]) -> None:
    times = [each * (1 + noise[n] / 4) for n in range(total)]
    assert seen(*bars(times, total)).judge().cause is None


@given(st.floats(0.5, 3), st.integers(10, 60))
def test_a_load_that_gets_faster_is_never_suspect(each: float, total: int) -> None:
    times = [each * (2 - n / total) for n in range(total)]
    assert seen(*bars(times, total)).judge().cause is None


def test_every_degradation_beyond_the_clock_is_suspect() -> None:
    for total in (10, 20, 40):
        times = [1 + 0.15 * n for n in range(total)]
        assert seen(*bars(times, total)).judge().cause == "suspect"


def test_too_few_states_say_so() -> None:
    evidence = seen(Bar("", "FULL", 1, 11, 1), Bar("", "FULL", 11, 11, 21))
    assert "too few states" in evidence.judge().reason
    assert FileEvidence().judge().reason == "no capture seen in the log"


def test_two_ranks_in_one_file_are_one_run() -> None:
    states = bars([1.0] * 20, 20)
    both = [state for pair in zip(states[1:], states[:-1], strict=True) for state in pair]
    evidence = seen(*both)
    run = evidence.load()
    assert run is not None
    assert run.done == 20
    assert all(done == seconds for done, seconds in run.points)
    assert evidence.judge().cause is None


def test_a_server_started_again_is_another_run() -> None:
    slow, fast = bars((1 + 0.2 * n for n in range(20)), 20), bars([0.5] * 20, 20)
    evidence = seen(*slow, *fast)
    assert len(evidence.runs) == 2
    assert evidence.judge().cause is None
    assert seen(*fast, *slow).judge().cause == "suspect"


def test_piecewise_and_full_are_two_runs() -> None:
    evidence = seen(*bars([1.0] * 11, 11, "PIECEWISE"), *bars([1.0] * 8, 8))
    assert [(run.mode, run.done) for run in evidence.runs] == [("PIECEWISE", 11), ("FULL", 8)]


def test_a_run_that_only_began_hides_no_load() -> None:
    evidence = seen(*bars([1.0] * 11, 11), Bar("", "PIECEWISE", 0, 3, 0))
    run = evidence.load()
    assert run is not None
    assert run.total == 11


def test_a_later_load_had_streams_enough() -> None:
    evidence = FileEvidence()
    evidence.add(Exhaustion(207008))
    assert "207008" in evidence.judge().reason
    evidence.add(Finish(5, None, None, None))
    assert evidence.exhausted is None


EVENTS = st.builds(
    Bar,
    st.sampled_from(["", "decode"]),
    st.sampled_from(["FULL", "PIECEWISE"]),
    st.integers(0, 30),
    st.sampled_from([30, 31, 1000]),
    st.integers(0, 3000),
) | st.builds(Finish, st.integers(0, 99), st.none(), st.none(), st.none())


@given(st.lists(EVENTS, max_size=200))
def test_any_events_leave_a_bounded_sound_state(events: list[Bar | Finish]) -> None:
    evidence = FileEvidence()
    for event in events:
        evidence.add(event)
    assert len(evidence.runs) <= 16
    assert len(evidence.finishes) <= 64
    for run in evidence.runs:
        assert run.points == sorted(set(run.points))
        assert run.points[0] == (0, 0)
        assert len({done for done, _ in run.points}) == len(run.points)
    assert evidence.judge().verdict == "unknown"


def test_a_huge_load_keeps_its_ends() -> None:
    evidence = seen(*bars([0.1] * 20_000, 20_000))
    (run,) = evidence.runs
    assert len(run.points) <= 512
    assert run.points[0] == (0, 0)
    assert run.done == 20_000
    found = slopes(run)
    assert found is not None
    assert found.early == pytest.approx(0.1, rel=0.01)
    assert found.late == pytest.approx(0.1, rel=0.01)


def test_many_runs_and_finishes_are_bounded() -> None:
    evidence = FileEvidence()
    for n in range(100):
        evidence.add(Bar("", "FULL", 1, n + 2, 1))
        evidence.add(Finish(n, None, None, None))
    assert [run.total for run in evidence.runs] == list(range(86, 102))
    assert [f.seconds for f in evidence.finishes] == list(range(36, 100))


def test_files_are_bounded_and_the_silent_ones_go_first() -> None:
    evidence = LogEvidence(max_files=2)
    for path in ("a", "b", "a", "c"):
        evidence.add(path, iter([Finish(1, None, None, None)]))
    assert list(evidence.files()) == ["a", "c"]
    evidence.add("d", iter([]))
    assert list(evidence.files()) == ["a", "c"]


@pytest.mark.parametrize("points", [[(0, 0)], [(0, 0), (1, 1)], [(0, 0), (20, 30)]])
def test_no_slopes_of_too_little(points: list[tuple[int, int]]) -> None:
    assert slopes(Run(what="", mode="", total=20, points=points)) is None
