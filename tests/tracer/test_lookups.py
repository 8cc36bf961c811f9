"""Captures are seen whichever way a client finds CANN, whatever else is preloaded, however the tracer was built."""

import ctypes.util
import shutil

import pytest

from .building import WAYS, miss, run_traced

PLAIN_H2D = [6, 9, 12, 1]
"""3 copies a collective: n AllReduce and one AllGather in capture n; the fourth makes one copy itself."""


def check_plain(run):
    assert (run.code, run.errors) == (0, run.errors)
    assert run.copies == PLAIN_H2D
    for n, seen in enumerate(run.only[:3], start=1):
        assert seen.capture.collectives == {"AllReduce": n, "AllGather": 1}
        assert seen.communicators == {1: n, 2: 1}
        assert seen.communicators_complete
        assert seen.capture.h2d_bytes == 100 * PLAIN_H2D[n - 1]
        assert seen.other_copies == (0, 0, n + 1, 0, 1, 0, 0, 0)
        assert seen.capture.outcome == "ok"
        assert not seen.capture.ambiguous
        assert 0 <= (seen.capture.copy_seconds or 0) <= seen.capture.seconds
    assert [seen.graphs_alive for seen in run.only] == [1, 2, 3, 3]
    eager = run.traces[0].eager
    assert (eager.collectives, eager.h2d_copies, eager.h2d_bytes) == (1, 3, 300)
    assert run.traces[0].state == "finished"


@pytest.fixture(scope="session")
def unoptimised(build):
    return build.tracer("-O0")


@pytest.fixture(params=["release", "unoptimised"])
def any_tracer(request, tracer):
    return tracer if request.param == "release" else request.getfixturevalue("unoptimised")


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_cann(build, any_tracer, folder, way):
    check_plain(run_traced(folder, [any_tracer], [build.client(way), "plain"]))


def test_without_the_tracer_the_client_runs_and_leaves_nothing(build, folder):
    run = run_traced(folder, [], [build.client("linked"), "plain"])
    assert (run.code, run.traces) == (0, [])


@pytest.mark.parametrize("first", ["tracer", "other"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("forwards", ["next", "handle"])
def test_beside_another_interposer(build, any_tracer, folder, way, first, forwards):  # noqa: PLR0917 - fixtures
    client = build.client(way)
    options = ("-DBY_HANDLE",) if forwards == "handle" else ()
    other = build.library(f"libother-{forwards}.so", ["other.c"], *options, "-ldl")
    preload = [any_tracer, other] if first == "tracer" else [other, any_tracer]
    cann = str(build.folder)
    alone = run_traced(folder, [other], [client, "plain"], LD_LIBRARY_PATH=cann)
    run = run_traced(folder, preload, [client, "plain"], LD_LIBRARY_PATH=cann)
    if alone.code != 0 and first == "tracer":
        # It asks RTLD_NEXT for a CANN that is not in the global scope, and calls NULL: with us as without.
        assert run.code == alone.code
        return
    check_plain(run)
    if alone.code == 0:
        assert run.errors == alone.errors  # what the other saw


@pytest.mark.parametrize("first", ["tracer", "jemalloc"])
@pytest.mark.parametrize("way", WAYS)
def test_beside_jemalloc(build, tracer, folder, way, first):
    jemalloc = ctypes.util.find_library("jemalloc")
    if jemalloc is None:
        miss("libjemalloc is not installed")
    preload = [tracer, jemalloc] if first == "tracer" else [jemalloc, tracer]
    check_plain(run_traced(folder, preload, [build.client(way), "plain"]))


def test_answers_of_dlsym_stay_true(build, any_tracer, folder):
    library = build.cann() / "libhccl.so"
    client = build.compile("lookups", ["lookups.c"], "-ldl")
    run = run_traced(folder, [any_tracer], [client, library])
    assert (run.code, run.errors) == (0, "")
    assert run.copies == [0]


def test_second_copy_of_cann_is_left_alone(build, tracer, folder, tmp_path):
    first = build.cann()
    second = tmp_path / "second"
    shutil.copytree(first, second, ignore=shutil.ignore_patterns("client*", "tracer*"))
    client = build.compile("lookups", ["lookups.c"], "-ldl")
    run = run_traced(folder, [tracer], [client, first / "libacl_rt.so", second / "libacl_rt.so"])
    assert (run.code, run.errors) == (0, "")
    assert len(run.only) == 2
    assert run.facts[0].second_cann


def test_cann_closed_and_opened_again(build, tracer, folder):
    run = run_traced(
        folder, [tracer], [build.client("handle"), "reopening"], LD_LIBRARY_PATH=str(build.folder)
    )
    assert (run.code, run.copies) == (0, [1, 2])


@pytest.mark.parametrize("timer", ["0", "clock", "counter"])
def test_timers(build, tracer, folder, timer):
    client = build.client("linked")
    run = run_traced(folder, [tracer], [client, "threads"], CAPTURE_CANARY_TRACE_TIME=timer)
    for seen in run.only:  # four threads copy side by side
        seconds = seen.capture.copy_seconds
        assert seconds is None if timer == "0" else 0 < (seconds or 0) < 4 * seen.capture.seconds
