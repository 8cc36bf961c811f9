"""When to probe: on a grid, spread over nodes, not too near, whatever the clocks and restarts do."""

import math
import threading
from datetime import datetime, timezone
from typing import TypeVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capture_canary.schedule import (
    CLOCK_TOLERANCE,
    Plan,
    Schedule,
    SystemClock,
    cron_trigger,
    node_name,
    plan_for,
)

T = TypeVar("T")
HOUR = 3600.0
START = datetime(2026, 8, 1, 0, 30, tzinfo=timezone.utc).timestamp()
SIX_HOURS = Plan(6 * HOUR, None, 120.0)


class Clock:
    """A node's clocks, moved by hand."""

    def __init__(self) -> None:
        self.now, self.up, self.boot = START, 1000.0, "boot-1"
        self.passed = 0.0
        """What a clock that nobody sets would show."""

    def wall(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.up

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.up += seconds
        self.passed += seconds

    def reboot(self, seconds: float) -> None:
        self.passed += seconds
        self.now, self.up, self.boot = self.now + seconds, 10.0, self.boot + "'"


class Memory:
    """What outlives a restart, as bytes, as the history keeps it."""

    def __init__(self, *, durable: bool = True) -> None:
        self.durable = durable
        self.kept: dict[str, bytes] = {}

    def get(self, key: str, kind: type[T]) -> T | None:
        try:
            return msgspec.json.decode(self.kept[key], type=kind)
        except (KeyError, msgspec.MsgspecError, UnicodeDecodeError):
            return None

    def set(self, key: str, value: msgspec.Struct) -> None:
        self.kept[key] = msgspec.json.encode(value)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def probed(clock: Clock, memory: Memory) -> Schedule:
    """A schedule whose last probe began at START."""
    schedule = Schedule(SIX_HOURS, memory, clock)
    schedule.began()
    return schedule


def hours(moment: float) -> float:
    return (moment - START) / HOUR


def test_the_first_probe_comes_after_the_nodes_share_of_the_jitter(clock: Clock, memory: Memory):
    schedule = Schedule(SIX_HOURS, memory, clock)
    assert schedule.due() is None
    assert schedule.wait() == 120
    clock.pass_time(60)
    assert Schedule(SIX_HOURS, memory, clock).next_at() == START + 120, "kept over a restart"
    clock.pass_time(60)
    assert schedule.due() == ("scheduled", START + 120)
    assert schedule.wait() == 0


def test_a_memory_that_forgets_waits_for_the_grid(clock: Clock):
    schedule = Schedule(SIX_HOURS, Memory(durable=False), clock)
    assert schedule.next_at() == START + 5.5 * HOUR + 120


def test_probes_follow_the_grid(probed: Schedule, clock: Clock):
    for expected in (5.5, 11.5, 17.5):
        assert probed.next_at() == START + expected * HOUR + 120
        clock.pass_time(probed.wait() + 3)
        assert probed.due() is not None
        probed.began()
        assert probed.due() is None


def test_missed_times_are_one_probe(probed: Schedule, clock: Clock):
    clock.pass_time(5 * 24 * HOUR)
    due = probed.due()
    assert due == ("scheduled", START + 5.5 * HOUR + 120)
    probed.began()
    assert probed.due() is None
    assert hours(probed.next_at()) - 5 * 24 >= 3


def test_a_late_probe_is_not_followed_at_once(probed: Schedule, clock: Clock):
    clock.pass_time(10 * HOUR)  # due at 5.5, the next at 11.5
    probed.began()
    assert hours(probed.next_at()) == pytest.approx(17.5, abs=0.1)


def test_a_request_is_due_at_once_and_many_are_one(probed: Schedule, clock: Clock):
    clock.pass_time(7)
    probed.request()
    probed.request()
    assert probed.due() == ("requested", START + 7)
    probed.began()
    assert probed.due() is None
    probed.request()
    probed.refused(300)
    assert probed.due() is None, "a refused request is over"


def test_a_requested_probe_stands_in_for_the_scheduled_one_soon_after(
    probed: Schedule, clock: Clock
):
    clock.pass_time(5 * HOUR)
    probed.request()
    probed.began()
    assert hours(probed.next_at()) == pytest.approx(11.5, abs=0.1)


def test_what_was_refused_stays_due_and_is_tried_again(probed: Schedule, clock: Clock):
    clock.pass_time(6 * HOUR)
    since = probed.next_at()
    probed.refused(300)
    assert probed.due() is None
    assert probed.wait() == 300
    clock.pass_time(300)
    assert probed.due() == ("scheduled", since)


def test_a_wall_clock_set_forward_makes_nothing_due(probed: Schedule, clock: Clock):
    clock.now += 365 * 24 * HOUR
    clock.pass_time(60)
    assert probed.due() is None
    assert probed.next_at() - clock.now >= 3 * HOUR - 60 - CLOCK_TOLERANCE


def test_a_wall_clock_set_back_does_not_stop_probing(probed: Schedule, clock: Clock):
    clock.now -= 365 * 24 * HOUR
    assert probed.wait() <= 9 * HOUR


def test_a_restart_on_a_clock_that_was_set_knows_by_the_monotonic_one(
    probed: Schedule, clock: Clock, memory: Memory
):
    clock.now += 365 * 24 * HOUR
    again = Schedule(SIX_HOURS, memory, clock)
    assert again.due() is None
    assert again.next_at() == probed.next_at()


def test_a_reboot_without_a_clock_neither_probes_early_nor_waits_for_years(
    probed: Schedule, clock: Clock, memory: Memory
):
    probed.began()
    clock.reboot(60)
    real, clock.now = clock.now, 1000.0  # 1970, until NTP answers
    again = Schedule(SIX_HOURS, memory, clock)
    assert again.due() is None
    assert again.wait() <= 9 * HOUR
    clock.now = real
    assert again.due() is None
    assert again.wait() <= 9 * HOUR


@pytest.mark.parametrize(
    "kept",
    [
        *(b"", b"{}", b"[1]", b"\xff"),
        b'{"wall":1e999,"monotonic":0,"boot":"","probed":true}',
        b'{"wall":1e300,"monotonic":-1e300,"boot":"boot-1","probed":true}',
        b'{"wall":-1e300,"monotonic":1e300,"boot":"boot-1","probed":true}',
    ],
)
def test_a_damaged_memory_is_none(kept: bytes, clock: Clock, memory: Memory):
    memory.kept["schedule"] = kept
    schedule = Schedule(SIX_HOURS, memory, clock)
    assert 0 <= schedule.wait() <= 9 * HOUR


def test_a_new_plan_counts_from_the_last_probe(probed: Schedule, clock: Clock):
    clock.pass_time(2 * HOUR)
    probed.plan = Plan(HOUR, None, 0.0)
    assert hours(probed.next_at()) == 0.5
    assert probed.due() is not None


# How a node lives: time passes, clocks are set, daemons restart, nodes reboot, people ask.
events = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["pass", "reboot"]), st.floats(0, 40_000)),
        st.tuples(st.just("set"), st.floats(-1e8, 1e8)),
        st.tuples(st.sampled_from(["restart", "request", "refuse"]), st.just(0.0)),
    ),
    max_size=30,
)
plans = st.one_of(
    st.builds(Plan, st.floats(60, 30 * 86400), st.none(), st.floats(0, 600)),
    st.builds(
        Plan,
        st.just(HOUR),
        st.sampled_from(["*/5 * * * *", "0 3 * * *", "30 1 * * mon-fri", "0 0 1,2 * *"]),
        st.floats(0, 600),
    ),
)
LEAST = {"*/5 * * * *": 300.0, "0 3 * * *": 86400.0, "30 1 * * mon-fri": 86400.0}


@settings(deadline=None)
@given(events, plans)
def test_no_two_scheduled_probes_are_nearer_than_half_the_interval(
    story: list[tuple[str, float]], plan: Plan
):
    clock, memory = Clock(), Memory()
    schedule = Schedule(plan, memory, clock)
    least = plan.interval if plan.cron is None else LEAST.get(plan.cron, 86400.0)
    last = -math.inf
    for event, amount in story:
        if event == "pass":
            clock.pass_time(amount)
        elif event == "set":
            clock.now += amount
        elif event == "restart":
            before = schedule.next_at()
            schedule = Schedule(plan, memory, clock)
            assert schedule.next_at() == before
        elif event == "reboot":
            clock.reboot(amount)
            schedule = Schedule(plan, memory, clock)
        elif event == "request":
            schedule.request()
        else:
            schedule.refused(300)
        due = schedule.due()
        if due is None:
            assert schedule.wait() > 0
            continue
        if due.why == "scheduled":
            assert schedule.wait() == 0
            assert clock.passed - last >= least / 2 - 2 * CLOCK_TOLERANCE
        schedule.began()
        last = clock.passed
        assert schedule.due() is None


@settings(deadline=None)
@given(plans, st.floats(0, 4e9))
def test_a_grid_goes_on_strictly_and_does_not_depend_on_who_asks_when(plan: Plan, moment: float):
    first = plan.after(moment)
    second = plan.after(first)
    assert moment < first < second
    assert plan.after((moment + first) / 2) == first


def test_the_end_of_all_calendars_is_never():
    daily = Plan(HOUR, "0 3 * * *", 0.0)
    for moment in (1e300, -1e300, 2.6e11):
        assert daily.after(moment) == math.inf
    clock = Clock()
    clock.now = 1e300
    schedule = Schedule(daily, Memory(), clock)
    schedule.began()
    assert schedule.due() is None
    assert schedule.wait() == math.inf


def test_cron_is_utc_and_shifted_by_the_offset():
    plan = Plan(HOUR, "30 3 * * mon-fri", 60.0)
    saturday = datetime(2026, 8, 1, tzinfo=timezone.utc).timestamp()
    monday = datetime(2026, 8, 3, 3, 31, tzinfo=timezone.utc).timestamp()
    assert plan.after(saturday) == monday


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("* * * *", "five fields"),
        ("@daily", "five fields"),
        ("0 3 * * 1", "weekdays need names"),
        ("0 3 1 * mon", "exclude each other"),
        ("0 0 30 2 *", "never comes"),
        ("61 * * * *", None),
        ("x * * * *", None),
        ("0 3 * * mo(n|d)", "characters"),
        ("1,1" * 50 + " * * * *", "or too many"),
    ],
)
def test_a_cron_line_that_is_none_or_means_two_things_is_refused(line: str, why: str | None):
    with pytest.raises(ValueError, match=why):
        cron_trigger(line)


def test_a_fleet_is_spread_evenly_and_each_node_keeps_its_place():
    offsets = [
        plan_for(interval=HOUR, cron=None, jitter=600, node=f"node-{number}").offset
        for number in range(1000)
    ]
    tenths = [sum(n * 60 <= offset < (n + 1) * 60 for offset in offsets) for n in range(10)]
    assert min(tenths) > 60
    assert sum(tenths) == 1000
    assert plan_for(interval=HOUR, cron=None, jitter=600, node="node-7").offset == offsets[7]
    assert plan_for(interval=HOUR, cron=None, jitter=0, node="node-7").offset == 0


def test_a_nodes_name_is_the_charts_before_the_pods():
    assert node_name({"NODE_NAME": "worker-1"}, "canary-x7f2p") == "worker-1"
    assert node_name({"NODE_NAME": ""}, "host") == "host"


def test_the_systems_clocks():
    clock = SystemClock()
    assert clock.wall() > START
    assert clock.monotonic() <= clock.monotonic()
    assert len(clock.boot) == 36


def test_a_probe_that_begins_while_the_clock_is_mended_is_not_forgotten(
    probed: Schedule, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    beginner = threading.Thread(target=probed.began)
    replace = msgspec.structs.replace

    def slow(anchor: msgspec.Struct, **changes: object) -> msgspec.Struct:
        mended = replace(anchor, **changes)
        monkeypatch.undo()
        beginner.start()
        beginner.join(0.2)  # it may get in here, or must wait
        return mended

    monkeypatch.setattr(msgspec.structs, "replace", slow)
    clock.pass_time(50 * HOUR)
    clock.now += 100 * HOUR
    probed.next_at()
    beginner.join()
    assert probed.due() is None
    assert probed.next_at() > clock.now


def test_another_boots_monotonic_clock_says_nothing(probed: Schedule, clock: Clock, memory: Memory):
    expected = probed.next_at()
    clock.reboot(5 * HOUR)
    clock.up = 1500.0  # as if it went on from the boot before
    assert Schedule(SIX_HOURS, memory, clock).next_at() == expected
