"""What is recorded of a capture: by any thread, overlapping, failing, forked, after exec, in a ring."""

import pytest

from .building import run_traced


@pytest.fixture
def trace(build, tracer, folder):
    def run(*words, **environment):
        done = run_traced(folder, [tracer], [build.client("linked"), *words], **environment)
        assert (done.code, done.errors) == (0, "")
        return done

    return run


def test_copies_of_any_thread_count(trace):
    assert trace("threads").copies == [4000] * 3


def test_failures_are_captures_that_failed(trace):
    run = trace("failing")
    seen = [(s.capture.order, s.code, s.capture.outcome, s.capture.h2d_copies) for s in run.only]
    assert seen == [(1, 207008, "failed", 0), (2, 107025, "failed", 2), (3, 0, "ok", 1)]
    assert run.only[-1].graphs_alive == 1


def test_overlapping_captures_are_split_by_device(trace):
    run = trace("overlapping")
    *pair, alone = run.only
    by_device = {seen.device: seen for seen in pair}
    assert {d: seen.capture.h2d_copies for d, seen in by_device.items()} == {0: 10, 1: 20}
    assert all(seen.overlapped and not seen.capture.ambiguous for seen in pair)
    assert (alone.capture.h2d_copies, alone.overlapped, alone.capture.ambiguous) == (
        5,
        False,
        False,
    )
    assert len({seen.thread for seen in run.only}) == 3


def test_overlapping_captures_of_one_device_are_ambiguous(trace):
    *pair, alone = trace("overlapping-device").only
    assert all(seen.capture.ambiguous for seen in pair)
    assert not alone.capture.ambiguous


def test_crowd_of_captures_is_followed_or_counted_as_lost(trace):
    run = trace("crowd")
    assert len(run.only) + run.traces[0].lost_captures == 24 * 50
    assert run.traces[0].lost == 0
    assert len({seen.capture.order for seen in run.only}) == len(run.only)


def test_forked_child_has_a_file_of_its_own(trace):
    run = trace("forking")
    copies = sorted([c.capture.h2d_copies for c in captures] for captures in run.captures)
    assert copies == [[1, 3, 5], [3, 4]]
    assert [t.problem for t in run.traces] == [None, None]
    assert [t.state for t in run.traces] == ["finished", "finished"]


def test_exec_begins_a_new_trace(trace):
    assert trace("executing").copies == [2]


def test_descriptors_closed_behind_our_back_stay_theirs(trace):
    assert trace("closing").copies == [1, 1]


def test_file_stays_at_its_cap(trace):
    run = trace("many", "3000")
    assert run.traces[0].path.stat().st_size <= 1 << 20
    orders = [seen.capture.order for seen in run.only]
    assert orders == list(range(orders[0], 3001))
    assert len(orders) > 1500
    assert run.traces[0].lost == 6001 - 3435


def test_communicators_and_the_mode_as_hccl_first_saw_it(trace):
    run = trace("configured", HCCL_OP_EXPANSION_MODE="AIV")
    facts = run.facts[0]
    assert (facts.mode_state, facts.mode) == (
        "set",
        "AI_CPU",
    )  # set by the process before HCCL started
    assert [(c.id, c.ranks, c.rank, c.mode) for c in facts.communicators] == [
        (1, 8, 5, 3),
        (2, 2, 1, 0),
        (3, 2, 1, 0),
    ]
    assert run.only[0].communicators == {1: 1, 2: 2}
    assert [(lib.package, lib.version) for lib in facts.libraries] == [
        ("runtime", None),
        ("hccl", None),
        ("hcomm", None),
    ]


@pytest.mark.parametrize("mode", [None, "", "AIV", "x" * 39, "y" * 40, "ü\n"])
def test_mode_of_the_environment(trace, mode):
    environment = {} if mode is None else {"HCCL_OP_EXPANSION_MODE": mode}
    facts = trace("eager", "1", **environment).facts[0]
    expected = {
        None: ("unset", None),
        "y" * 40: ("too_long", "y" * 39),
        "ü\n": ("set", "???"),
    }.get(mode, ("set", mode))
    assert (facts.mode_state, facts.mode) == expected


def test_eager_copies_are_totals_of_the_process(trace):
    run = trace("eager", "20")
    assert run.only == []
    assert (run.traces[0].eager.collectives, run.traces[0].eager.h2d_copies) == (20, 60)
    assert run.traces[0].eager.copies[2] == 20


@pytest.mark.parametrize("layout", ["share/info/{}/version.info", "{}/version.info"])
def test_versions_of_cann_where_it_keeps_them(build, tracer, folder, layout):
    build.cann("cann/lib64/")
    for package in ("runtime", "hccl", "hcomm"):
        file = build.folder / "cann" / layout.format(package)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"Version=9.1.0-{package}\nversion_dir=cann\n")
    client = build.client("handle")
    run = run_traced(
        folder,
        [tracer],
        [client, "plain"],
        LD_LIBRARY_PATH=str(build.folder / "cann" / "lib64"),
    )
    assert [(lib.package, lib.version) for lib in run.facts[0].libraries] == [
        ("runtime", "9.1.0-runtime"),
        ("hccl", "9.1.0-hccl"),
        ("hcomm", "9.1.0-hcomm"),
    ]
