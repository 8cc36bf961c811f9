"""What is remembered and how it is asked for."""

import math
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.builders import make_report, make_stack

from capture_canary.model import Fact, VerdictName
from capture_canary.store import Limits, Store

DAY = 86400.0
NOW = 1_790_000_000.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    yield opened
    assert opened.problem is None
    opened.close()


def test_a_probe_comes_back_whole(store: Store) -> None:
    report = make_report("degraded", peers=7, k=4)
    store.add_probe(report, at=NOW, took=1.5, stack="abc")
    (listed,) = store.probes()
    assert (listed.at, listed.took, listed.stack, listed.verdict) == (NOW, 1.5, "abc", "degraded")
    assert report.growth.copies is not None
    assert listed.copies == report.growth.copies.estimate
    assert listed.report is None
    (whole,) = store.probes(whole=True)
    assert whole.report == report
    assert store.probe(listed.id) == whole
    assert store.probe(listed.id + 1) is None


def test_newest_first_and_since(store: Store) -> None:
    for day in range(5):
        store.add_probe(make_report("healthy"), at=NOW + day * DAY, stack="abc")
    assert [probe.at for probe in store.probes(2)] == [NOW + 4 * DAY, NOW + 3 * DAY]
    assert len(store.probes(since=NOW + 3 * DAY)) == 2


def test_what_probes_spent_is_summed_however_many_there_are(store: Store) -> None:
    assert store.seconds_spent(since=0.0, until=1.0) == 0.0
    for at in range(1200):
        store.add_probe(make_report("healthy", captures=1), at=float(at), stack="a", took=0.5)
    store.add_probe(make_report("healthy"), at=1150.0, stack="a", took=99.0, evidence="trace")
    assert store.seconds_spent(since=0.0, until=1200.0) == 600.0
    assert store.seconds_spent(since=1100.0, until=1200.0) == 50.0
    assert store.seconds_spent(since=0.0, until=99.0) == 50.0, "nothing from the future"


def test_failures_outlive_the_good_ones(store: Store) -> None:
    store.add_probe(make_report("degraded"), at=NOW, stack="abc")
    for hour in range(1, 60):
        store.add_probe(make_report("healthy"), at=NOW + hour, stack="abc")
    assert [probe.at for probe in store.failures(5)] == [NOW]


def test_only_changes_of_the_verdict_are_changes(store: Store) -> None:
    said: list[VerdictName] = ["healthy", "healthy", "degraded", "degraded", "healthy"]
    for hour, verdict in enumerate(said):
        store.add_probe(make_report(verdict), at=NOW + hour, stack="abc")
    changes = [(change.verdict, change.at) for change in store.changes()]
    assert changes == [("healthy", NOW + 4), ("degraded", NOW + 2), ("healthy", NOW)]
    assert [change.verdict for change in store.present()] == ["healthy"]


def test_a_degradation_stays_open_through_unknown_and_restart(tmp_path: Path) -> None:
    first = Store(tmp_path)
    said: list[VerdictName] = ["healthy", "degraded", "unknown", "degraded", "unknown"]
    for hour, verdict in enumerate(said):
        first.add_probe(make_report(verdict), at=NOW + hour, stack="abc")
    first.close()
    second = Store(tmp_path)
    open_now = second.open_verdict("abc")
    assert open_now is not None
    assert open_now.since == NOW + 1, "an unknown in between does not start it anew"
    assert second.open_verdict("other") is None
    second.add_probe(make_report("mitigated"), at=NOW + 9, stack="abc")
    assert second.open_verdict("abc") is None
    second.close()


def test_another_cause_does_not_start_it_anew(store: Store) -> None:
    store.add_probe(make_report("degraded", cause="time_only"), at=NOW, stack="abc")
    store.add_probe(make_report("degraded"), at=NOW + 5, stack="abc")
    (now,) = store.present()
    assert (now.cause, now.since, now.at) == ("aicpu_resource_list", NOW, NOW + 5)


def test_each_kind_of_evidence_has_its_own_verdict(store: Store) -> None:
    store.add_probe(make_report("degraded"), at=NOW, stack="abc", evidence="trace")
    store.add_probe(make_report("healthy"), at=NOW + 1, stack="abc", evidence="probe")
    assert {(one.evidence, one.verdict) for one in store.present()} == {
        ("trace", "degraded"),
        ("probe", "healthy"),
    }
    assert store.open_verdict("abc") is not None


def test_a_stack_that_left_is_closed_and_may_come_back(store: Store) -> None:
    store.add_probe(make_report("degraded"), at=NOW, stack="old")
    store.add_probe(make_report("degraded"), at=NOW, stack="old", evidence="trace")
    store.add_probe(make_report("degraded"), at=NOW, stack="new")
    store.retire("probe", keep={"new"}, emulated=True, at=NOW + 1, reason="another stack")
    assert {(one.stack, one.evidence) for one in store.open_degradations()} == {
        ("new", "probe"),
        ("old", "trace"),
    }
    store.retire("trace", keep=(), emulated=False, at=NOW + 1, reason="of a real node")
    assert len(store.present()) == 2
    store.retire("trace", keep=(), emulated=True, at=NOW + 1, reason="no process has it any more")
    assert [one.stack for one in store.present()] == ["new"]
    assert store.changes()[0].retired
    store.add_probe(make_report("degraded"), at=NOW + 2, stack="old")
    back = store.open_verdict("old")
    assert back is not None
    assert back.since == NOW + 2


def test_skips_in_a_row_are_counted_together(store: Store) -> None:
    for hour in range(3):
        store.add_skip("busy", at=NOW + hour, detail=f"pid {hour}")
    store.add_skip("paused", at=NOW + 3)
    store.add_skip("busy", at=NOW + 4)
    store.add_probe(make_report("healthy"), at=NOW + 5, stack="abc")
    store.add_skip("busy", at=NOW + 6)
    assert [(skip.reason, skip.count) for skip in store.skips()] == [
        ("busy", 1),
        ("busy", 1),
        ("paused", 1),
        ("busy", 3),
    ]
    oldest = store.skips()[-1]
    assert (oldest.first, oldest.last, oldest.detail) == (NOW, NOW + 2, "pid 2")


def test_stacks_are_kept_when_they_differ(store: Store) -> None:
    old, new = make_stack("8.5.0"), make_stack("9.1.0")
    for hour, stacks in enumerate(({"a": old}, {"a": old}, {"a": old, "b": new}, {"b": new})):
        store.note_stacks(stacks, at=NOW + hour)
    assert [(row.at, sorted(row.stacks)) for row in store.stacks()] == [
        (NOW + 3, ["b"]),
        (NOW + 2, ["a", "b"]),
        (NOW, ["a"]),
    ]
    assert store.stacks()[0].stacks["b"] == new


class Budget(msgspec.Struct):
    day: str
    seconds: float


def test_small_values(store: Store) -> None:
    store.save("budget", Budget("2026-11-29", 12.5))
    store.save("latched", "hbm_not_released")
    assert store.load("budget", Budget) == Budget("2026-11-29", 12.5)
    assert store.load("latched", str) == "hbm_not_released"
    assert store.load("latched", Budget) is None, "of another kind"
    assert store.load("missing", str) is None
    store.save("latched", None)
    assert store.load("latched", str) is None


def test_what_can_not_be_kept_is_refused_and_the_rest_goes_on(store: Store) -> None:
    store.add_probe(make_report("healthy"), at=math.nan, stack="abc")
    store.save("odd", object())
    store.add_event("start", at=math.inf)
    store.add_probe(make_report("healthy"), at=NOW, stack="abc")
    assert store.probes(10**30) == []
    assert [probe.at for probe in store.probes()] == [NOW]


def test_odd_text_is_kept_as_text(store: Store) -> None:
    hostile = "\udc80<script>'; DROP TABLE probes;--\x00" + "x" * 10_000
    stack = {"cann": Fact(value=hostile, source=hostile)}
    store.add_probe(make_report("degraded", reason=hostile, stack=stack), at=NOW, stack=hostile)
    store.note_stacks({hostile: stack}, at=NOW)
    store.add_skip(hostile, at=NOW, detail=hostile)
    store.add_event(hostile, at=NOW, detail=hostile)
    store.save(hostile, hostile)
    (probe,) = store.probes(whole=True)
    assert probe.report is not None
    assert probe.reason.startswith("?<script>'; DROP TABLE probes;--")
    assert len(probe.reason) <= 2000
    assert len(store.stacks()) == len(store.skips()) == len(store.events()) == 1
    store.retire("probe", keep=(), emulated=probe.emulated, at=NOW, reason=hostile)
    assert store.present() == []


def test_age_drops_rows_but_not_what_still_holds(tmp_path: Path) -> None:
    store = Store(tmp_path, limits=Limits(max_age=30 * DAY))
    store.add_probe(make_report("healthy"), at=NOW - 2, stack="abc")
    store.add_probe(make_report("degraded"), at=NOW - 1, stack="abc")
    store.add_probe(make_report("unknown"), at=NOW, stack="abc")
    store.note_stacks({"abc": make_stack()}, at=NOW)
    store.add_skip("busy", at=NOW)
    store.maintain(now=NOW + 31 * DAY)
    assert store.probes() == []
    still = store.open_verdict("abc")
    assert still is not None
    assert still.since == NOW - 1
    assert [change.verdict for change in store.changes()] == ["unknown", "degraded"]
    assert len(store.stacks()) == 1
    store.close()


def test_the_file_shrinks_to_its_limit_and_keeps_the_failures(tmp_path: Path) -> None:
    store = Store(tmp_path, limits=Limits(failures=3))
    for hour in range(200):
        verdict: VerdictName = "degraded" if hour in {1, 50, 60, 70} else "mitigated"
        store.add_probe(make_report(verdict, captures=60), at=NOW + hour, stack="abc")
    store.close()
    before = store.path.stat().st_size
    limit = int(before / 2.5)
    store = Store(tmp_path, limits=Limits(max_bytes=limit, failures=3))
    store.maintain(now=NOW + 200)
    after = store.path.stat().st_size
    assert after < before / 2
    assert after <= limit * 1.1
    kept = [probe for probe in store.probes(1000, whole=True) if probe.report is not None]
    assert {NOW + 50, NOW + 60, NOW + 70} <= {probe.at for probe in kept}
    assert NOW in {probe.at for probe in store.probes(1000)}, "its row stays, its series went"
    assert store.path.with_name("history.db-wal").stat().st_size == 0
    assert store.problem is None
    store.close()


def test_a_limit_of_nothing_leaves_the_present(tmp_path: Path) -> None:
    store = Store(tmp_path, limits=Limits(max_bytes=0))
    for hour in range(50):
        store.add_probe(make_report("degraded"), at=NOW + hour, stack="abc")
    store.maintain(now=NOW + 50)
    assert store.probes() == []
    assert store.open_verdict("abc") is not None
    store.close()


def test_threads_share_a_store(store: Store) -> None:
    def add(worker: int) -> None:
        for number in range(20):
            store.add_event("start", at=NOW + number, detail=str(worker))

    threads = [threading.Thread(target=add, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.events(1000)) == 80


def test_nothing_is_left_open(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        store = Store(tmp_path)
        store.add_event("start", at=NOW)
        store.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["history.db"]
