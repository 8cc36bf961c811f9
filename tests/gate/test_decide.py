from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from capture_canary.gate.choose import card_of, choose
from capture_canary.gate.decide import decide
from capture_canary.gate.model import Holders, Rules, Snapshot, explain
from capture_canary.stack.npus import Chip, Npus, Process

IDLE = 3143


def chip(phy_id: int, **changes: object) -> Chip:
    fields: dict[str, object] = {
        "npu": phy_id // 2,
        "chip": phy_id % 2,
        "phy_id": phy_id,
        "name": "Ascend910",
        "health": "OK",
        "bus_id": None,
        "hbm_used_mb": IDLE,
        "hbm_total_mb": 65536,
        "aicore": 0,
        "processes": 0,
    }
    return Chip(**(fields | changes))  # type: ignore[arg-type]


def busy(phy_id: int) -> Process:
    return Process(
        npu=phy_id // 2,
        chip=phy_id % 2,
        phy_id=phy_id,
        pid=412007,
        pid_in_container=None,
        name="VLLMWorker_TP",
        memory_mb=54980,
    )


def npus(*chips: Chip, processes: tuple[Process, ...] = ()) -> Npus:
    return Npus(source="npu-smi info", version="25.5.1", chips=chips, processes=processes)


A3 = npus(*(chip(n) for n in range(4)))
FREE = Snapshot(
    npus=A3,
    nodes=frozenset({0, 1, 2, 3}),
    sees_all=True,
    cann="8.5.0",
    driver="25.5.1",
    soc="a3",
    load=0.05,
    last_probe_age=6 * 3600.0,
)


def facts(**changes: object) -> Snapshot:
    return replace(FREE, **changes)


def with_chips(*chips: Chip, processes: tuple[Process, ...] = ()) -> Snapshot:
    return facts(npus=npus(*chips, processes=processes))


def test_a_free_node_may_be_probed_on_one_card() -> None:
    decision = decide(Rules(), FREE)
    assert decision.allowed
    assert decision.reason is None
    assert decision.devices == (0, 1)
    assert all(check.ok for check in decision.checks)


REFUSALS: list[tuple[str, Snapshot]] = [
    ("paused", facts(paused="paused: true in the configuration")),
    ("latched", facts(latched="2 device errors in a row")),
    ("locked", facts(locked="pid 4 holds the lock")),
    ("budget", facts(spent_device_seconds=1700.0)),
    ("npus_unknown", facts(npus=None, npus_error="npu-smi info: not done in 10 s")),
    ("npus_unknown", facts(npus=npus())),
    ("not_ours", facts(nodes=frozenset())),
    ("not_ours", facts(nodes=frozenset({3}))),
    ("not_ours", facts(place="privileged")),
    ("not_ours", facts(place="host")),
    ("unhealthy", with_chips(chip(0), chip(1, health="Alarm"))),
    ("unhealthy", with_chips(chip(0), chip(1, health="Warning"))),
    ("driver_mismatch", facts(cann="9.1.0", driver="25.0.rc1")),
    ("busy", with_chips(chip(0, processes=1), chip(1, processes=1))),
    ("busy", with_chips(chip(0), chip(1), processes=(busy(1),))),
    ("busy", facts(holders=Holders(pids={0: (7,), 1: (7,), 2: (8,)}, complete=False, why=""))),
    ("holders_unseen", with_chips(chip(0), chip(1, processes=None))),
    ("holders_unseen", with_chips(chip(0), chip(1, hbm_used_mb=58211))),
    ("holders_unseen", with_chips(chip(0), chip(1, aicore=37))),
    ("holders_unseen", facts(sees_all=False, sees_all_why="an ordinary container")),
    ("hbm", with_chips(chip(0), chip(1, hbm_used_mb=None))),
    ("hbm", with_chips(chip(0), chip(1, hbm_total_mb=6000))),
    ("node_busy", facts(load=0.5)),
]
NAMES = {
    "paused": "paused",
    "latched": "latch",
    "locked": "lock",
    "budget": "budget",
    "npus_unknown": "npus",
    "not_ours": "ours",
    "unhealthy": "health",
    "driver_mismatch": "driver",
    "busy": "processes",
    "holders_unseen": "processes",
    "hbm": "hbm",
    "streams": "streams",
    "node_busy": "idle",
}
"""The question that refuses, by the reason."""


@pytest.mark.parametrize(("reason", "snapshot"), REFUSALS)
def test_refuses_with_its_reason(reason: str, snapshot: Snapshot) -> None:
    decision = decide(Rules(), snapshot)
    assert not decision.allowed
    assert decision.reason == reason
    assert decision.devices == ()
    asked = [check.ok for check in decision.checks]
    refused = decision.checks[asked.index(False)]
    assert refused.name == NAMES[reason]
    assert decision.sentence == f"No probe now ({reason}): {refused.detail}."
    assert asked.index(False) == len([ok for ok in asked if ok])
    assert all(ok is None for ok in asked[asked.index(False) + 1 :])


def detail(name: str, rules: Rules, snapshot: Snapshot) -> str:
    return next(check.detail for check in decide(rules, snapshot).checks if check.name == name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("paused", "not paused"),
        ("latch", "not latched off"),
        ("lock", "no other probe on this node"),
        ("budget", "0 of 1800 device-seconds spent in 24 h, a probe may take 240"),
        ("npus", "4 chips by npu-smi info"),
        ("ours", "4 chips given to this container"),
        ("health", "4 chips healthy"),
        ("driver", "CANN 8.5.0 needs driver 25.0 or newer; installed is 25.5.1"),
        ("processes", "4 chips no process on them"),
        ("hbm", "4 chips 3072 MB of HBM free"),
        ("streams", "1984 on a chip that nobody else uses, 640 wanted with the reserve"),
        ("idle", "load 0.05 a CPU, idle-only: at most 0.2"),
    ],
)
def test_a_yes_says_what_it_rests_on(name: str, words: str) -> None:
    assert detail(name, Rules(), FREE) == words


@pytest.mark.parametrize(
    ("name", "snapshot", "words"),
    [
        ("paused", facts(paused="by hand"), "by hand"),
        ("latch", facts(latched="2 device errors"), "2 device errors"),
        ("lock", facts(locked="pid 4 holds it"), "pid 4 holds it"),
        ("npus", facts(exporter_error="its page is old"), "npu-smi info, its page is old"),
        ("health", with_chips(chip(0), chip(1, health="Alarm")), "not davinci1 (health Alarm); a"),
        ("health", with_chips(chip(0), chip(1, health="Alarm")), "; a probe takes 2"),
        (
            "ours",
            facts(nodes=frozenset({1, 2, 3})),
            "3 chips given to this container, not davinci0",
        ),
        ("streams", facts(soc=None), "the stream limit of SoC unknown is not known"),
        ("streams", facts(soc="310p"), "the stream limit of SoC 310p is not known"),
        ("idle", facts(load=None), "the host's load is not known"),
    ],
)
def test_what_stands_in_the_way_is_named(name: str, snapshot: Snapshot, words: str) -> None:
    assert words in detail(name, Rules(), snapshot)


def test_who_holds_a_chip_is_named_by_the_first_process() -> None:
    second = replace(busy(0), pid=5, name="")
    shown = with_chips(chip(0, processes=2), chip(1), processes=(busy(0), second))
    assert "(davinci0: pid 412007 VLLMWorker_TP)" in detail("processes", Rules(), shown)
    opened = facts(holders=Holders(pids=dict.fromkeys(range(4), (7, 9)), complete=True, why=""))
    assert "davinci0: open in pid 7;" in detail("processes", Rules(), opened)


def test_a_crowd_is_not_named_in_full() -> None:
    crowd = [chip(n, processes=1) for n in range(20)]
    taken = replace(with_chips(*crowd), nodes=frozenset(range(20)))
    text = detail("processes", Rules(), taken)
    assert text.count(", not davinci") + text.count(", davinci") == 16
    assert text.count(": 1 processes") == 4
    unseen = replace(with_chips(*(chip(n, aicore=1) for n in range(20))), nodes=taken.nodes)
    assert detail("processes", Rules(), unseen).count("AI cores 1 % busy") == 4


@pytest.mark.parametrize("soc", ["a2", "a3", "950"])
def test_a_probe_may_take_all_streams_of_a_chip_and_no_more(soc: str) -> None:
    all_of_them = Rules(probe_streams=1984, reserve_streams=0)
    assert decide(all_of_them, facts(soc=soc)).allowed
    assert decide(replace(all_of_them, reserve_streams=1), facts(soc=soc)).reason == "streams"


def test_a_budget_may_be_spent_to_the_last_second() -> None:
    assert decide(Rules(), facts(spent_device_seconds=1560.0)).allowed
    assert decide(Rules(), facts(spent_device_seconds=1561.0)).reason == "budget"


def test_hbm_that_just_suffices_is_enough() -> None:
    chips = [chip(n, hbm_total_mb=IDLE + 3072) for n in range(2)]
    assert decide(Rules(), with_chips(*chips)).allowed
    assert decide(Rules(reserve_hbm_mb=2049), with_chips(*chips)).reason == "hbm"


@pytest.mark.parametrize(
    ("idle_mb", "used_mb", "reason"),
    [(IDLE, IDLE, None), (IDLE - 1, IDLE, "holders_unseen"), (0, 0, None), (0, None, "hbm")],
)
def test_hbm_up_to_the_idle_one_is_nobodys(
    idle_mb: int, used_mb: int | None, reason: str | None
) -> None:
    chips = [chip(n, hbm_used_mb=used_mb, hbm_total_mb=20_000) for n in range(2)]
    assert decide(Rules(idle_hbm_mb=idle_mb), with_chips(*chips)).reason == reason


@pytest.mark.parametrize("unknown", ["load", "soc"])
def test_load_and_streams_that_are_not_known_do_not_refuse(unknown: str) -> None:
    assert decide(Rules(), facts(**{unknown: None})).allowed


def test_one_chip_is_known_and_too_few() -> None:
    assert decide(Rules(), with_chips(chip(0))).reason == "not_ours"
    assert decide(Rules(devices=1), with_chips(chip(0))).devices == (0,)


def test_the_table_s_version_stands_in_for_the_driver_s() -> None:
    old = replace(A3, version="25.0.7")
    assert decide(Rules(), facts(cann="9.1.0", driver=None, npus=old)).reason == "driver_mismatch"
    assert decide(Rules(), facts(cann="9.1.0", driver="25.2.0", npus=old)).allowed


def test_processes_of_chips_without_a_number_hold_no_other() -> None:
    nameless = replace(chip(9), phy_id=None, npu=0)
    elsewhere = replace(busy(8), phy_id=None)
    snapshot = with_chips(chip(0), chip(1), nameless, processes=(elsewhere,))
    assert decide(Rules(), snapshot).devices == (0, 1)


def test_unknown_versions_are_said_and_do_not_refuse() -> None:
    unknown = facts(cann=None, driver=None)
    assert decide(Rules(), unknown).allowed
    assert "CANN's version is not known" in detail("driver", Rules(), unknown)


def test_an_operator_may_overrule_the_driver_table() -> None:
    assert decide(Rules(any_driver=True), facts(cann="9.1.0", driver="25.0.1")).allowed


@pytest.mark.parametrize("place", ["host", "privileged"])
def test_unmanaged_takes_every_free_chip(place: str) -> None:
    assert decide(Rules(unmanaged=True), facts(place=place)).devices == (0, 1)


def test_unmanaged_takes_no_chip_whose_node_is_not_here() -> None:
    snapshot = facts(place="container", nodes=frozenset({1, 2, 3}))
    assert decide(Rules(unmanaged=True), snapshot).devices == (2, 3)


def test_only_named_chips_are_taken():
    assert decide(Rules(only=(2, 3)), FREE).devices == (2, 3)
    assert decide(Rules(only=(2, 3), unmanaged=True), replace(FREE, place="host")).devices == (2, 3)
    assert decide(Rules(only=(2, 3)), replace(FREE, emulated=True)).devices == (2, 3)
    decision = decide(Rules(only=(2, 9)), FREE)
    assert (decision.allowed, decision.reason) == (False, "not_ours")
    assert "named by probe.devices" in decision.sentence
    taken = with_chips(*(chip(n) for n in range(4)), processes=(busy(2),))
    assert decide(Rules(only=(2, 3)), taken).reason == "busy"


def test_only_chips_that_are_ours_are_taken() -> None:
    decision = decide(Rules(), facts(nodes=frozenset({1, 2, 3})))
    assert decision.devices == (2, 3)


def test_free_chips_are_probed_beside_a_busy_card() -> None:
    servers = (busy(0), busy(1))
    used = [chip(0, processes=1, hbm_used_mb=58211), chip(1, processes=1, hbm_used_mb=58211)]
    decision = decide(Rules(), with_chips(*used, chip(2), chip(3), processes=servers))
    assert decision.devices == (2, 3)


def test_idle_only_leaves_a_card_alone_whose_other_chip_serves() -> None:
    chips = [chip(0, processes=1), chip(1), chip(2, processes=1), chip(3)]
    snapshot = with_chips(*chips, processes=(busy(0), busy(2)))
    assert decide(Rules(), snapshot).reason == "node_busy"
    late = replace(snapshot, last_probe_age=25 * 3600.0)
    assert decide(Rules(policy="prefer-idle"), late).devices == (1, 3)


def test_exclusive_chips_that_are_quiet_may_be_probed_with_holders_unseen() -> None:
    rules = Rules(assume_exclusive=True)
    assert decide(rules, facts(sees_all=False)).allowed
    loud = replace(with_chips(chip(0), chip(1, hbm_used_mb=58211)), sees_all=False)
    assert decide(rules, loud).reason == "holders_unseen"
    unknown = replace(with_chips(chip(0), chip(1, processes=None)), sees_all=False)
    assert decide(rules, unknown).reason == "holders_unseen"


def test_a_complete_proc_scan_stands_in_for_the_process_table() -> None:
    scan = Holders(pids={}, complete=True, why="hostPID")
    chips = [chip(n, processes=None) for n in range(4)]
    snapshot = replace(with_chips(*chips), holders=scan, sees_all=False)
    assert decide(Rules(), snapshot).allowed


def test_idle_hbm_of_large_chips_is_more() -> None:
    big = [chip(n, npu=n, hbm_used_mb=5415, hbm_total_mb=131072) for n in range(2)]
    assert decide(Rules(), replace(with_chips(*big), soc="950")).allowed
    small = [chip(n, hbm_used_mb=5415) for n in range(2)]
    assert decide(Rules(), with_chips(*small)).reason == "holders_unseen"


@pytest.mark.parametrize(
    ("hours", "load", "allowed"),
    [
        (0.1, 0.19, True),
        (0.1, 0.3, False),
        (8, 0.39, True),
        (8, 0.41, False),
        (24, 9.0, True),
        (0, 0.2, True),
        (-3, 0.2, True),  # the clock went back
        (-3, 0.200001, False),
    ],
)
def test_patience_ends_with_the_age_of_the_last_probe(
    hours: float, load: float, *, allowed: bool
) -> None:
    snapshot = facts(load=load, last_probe_age=hours * 3600)
    assert decide(Rules(policy="prefer-idle"), snapshot).allowed is allowed
    assert decide(Rules(), snapshot).allowed is (load <= 0.2)


@pytest.mark.parametrize(
    ("hours", "words"),
    [
        (None, "prefer-idle: never probed, patience is over"),
        (25, "prefer-idle: last probe 25 h ago, patience is over"),
        (8, "prefer-idle: at most 0.40, last probe 8.0 h ago"),
    ],
)
def test_the_age_of_the_last_probe_is_said(hours: float | None, words: str) -> None:
    snapshot = facts(last_probe_age=None if hours is None else hours * 3600)
    assert words in detail("idle", Rules(policy="prefer-idle"), snapshot)


def test_a_chip_without_a_number_is_never_taken() -> None:
    nameless = [chip(0), replace(chip(1), phy_id=None)]
    for rules in (Rules(), Rules(unmanaged=True)):
        assert decide(rules, with_chips(*nameless)).reason == "not_ours"


def test_an_emulated_node_needs_no_device_nodes() -> None:
    decision = decide(
        Rules(), facts(emulated=True, nodes=frozenset(), sees_all=False, place="host")
    )
    assert decision.allowed


def test_explains_every_check() -> None:
    text = explain(decide(Rules(), facts(nodes=frozenset({3}))))
    assert "No probe now (not_ours)" in text
    assert "davinci0" in text
    assert "not asked" in text
    for check in decide(Rules(), FREE).checks:
        assert check.name in text


CHIPS = st.builds(
    chip,
    phy_id=st.integers(0, 7),
    health=st.sampled_from(["OK", "OK", "OK", "Alarm"]),
    hbm_used_mb=st.sampled_from([None, IDLE, IDLE, IDLE, 58211]),
    aicore=st.sampled_from([None, 0, 0, 37]),
    processes=st.sampled_from([None, 0, 0, 0, 1]),
)
SNAPSHOTS = st.builds(
    facts,
    npus=st.lists(CHIPS, max_size=8, unique_by=lambda c: c.phy_id).map(lambda c: npus(*c)),
    nodes=st.frozensets(st.integers(0, 7)),
    sees_all=st.booleans(),
    emulated=st.booleans(),
    place=st.sampled_from(["host", "container", "privileged"]),
    load=st.sampled_from([None, 0.0, 0.5, 5.0]),
    last_probe_age=st.sampled_from([None, 0.0, 1e5, 1e9]),
    holders=st.none()
    | st.builds(
        Holders,
        pids=st.dictionaries(st.integers(0, 7), st.just((9,))),
        complete=st.booleans(),
        why=st.just(""),
    ),
)
RULES = st.builds(
    Rules,
    devices=st.integers(2, 4),
    unmanaged=st.booleans(),
    assume_exclusive=st.booleans(),
    policy=st.sampled_from(["idle-only", "prefer-idle"]),
)


@given(RULES, SNAPSHOTS)
def test_no_policy_ever_takes_a_chip_that_somebody_may_hold(
    rules: Rules, snapshot: Snapshot
) -> None:
    decision = decide(rules, snapshot)
    assert decision.allowed == (decision.reason is None)
    assert explain(decision)
    if not decision.allowed:
        return
    assert snapshot.npus is not None
    assert len(set(decision.devices)) == rules.devices
    by_number = {c.phy_id: c for c in snapshot.npus.chips}
    complete = snapshot.holders is not None and snapshot.holders.complete
    for n in decision.devices:
        taken = by_number[n]
        assert taken.health == "OK"
        assert not taken.processes
        assert taken.processes == 0 or complete
        assert not taken.aicore
        assert taken.hbm_used_mb == IDLE
        assert snapshot.holders is None or n not in snapshot.holders.pids
        assert rules.unmanaged or snapshot.emulated or n in snapshot.nodes
        assert snapshot.sees_all or snapshot.emulated or complete or rules.assume_exclusive


def numbers(*given: int, **changes: object) -> list[Chip]:
    return [chip(n, **changes) for n in given]


@pytest.mark.parametrize(
    ("free", "count", "expected"),
    [
        ([0, 1, 2, 3], 2, [0, 1]),
        ([1, 2, 3], 2, [2, 3]),
        ([1, 3], 2, [1, 3]),
        ([1, 2, 4, 5, 6, 7], 4, [4, 5, 6, 7]),
        ([0, 1, 2, 3, 4], 3, [0, 1, 2]),
    ],
)
@pytest.mark.parametrize(
    "source", [numbers, lambda *n: numbers(*n, npu=None)], ids=["card known", "card guessed"]
)
def test_whole_cards_first(
    free: list[int], count: int, expected: list[int], source: Callable[..., list[Chip]]
) -> None:
    assert choose(source(*free), count, "a3") == expected


def test_an_a2_has_a_chip_a_card() -> None:
    chips = [chip(n, npu=n, chip=0) for n in range(4)]
    assert choose(chips[1:], 2, "a2") == [1, 2]


@pytest.mark.parametrize(
    ("npu", "phy_id", "soc", "card"),
    [
        (5, 3, "a3", 5),
        (None, 3, "a3", 1),
        (None, 3, "a2", 3),
        (None, 3, None, 3),
        (None, None, "a2", 0),
    ],
)
def test_the_card_is_as_told_or_guessed_from_the_number(
    npu: int | None, phy_id: int | None, soc: str | None, card: int
) -> None:
    assert card_of(replace(chip(0), npu=npu, phy_id=phy_id), soc) == card
