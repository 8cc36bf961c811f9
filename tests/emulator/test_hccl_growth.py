"""The resource lists make the copies that hcomm's own sources made, and meet the growth law."""

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.emulator.growth_law import HCOMM, Law, emulate, limited, measured
from tests.emulator.hccl_client import GrowthServer


@pytest.mark.parametrize("hcomm", HCOMM)
def test_every_count_and_byte_that_hcomms_own_sources_made(
    growth_server: GrowthServer, hcomm: str
) -> None:
    rows = 0
    for key, want in measured():
        if key[0] != hcomm:
            continue
        _, op, k, peers, destroyed = key
        points = growth_server.run(
            emulate(*HCOMM[hcomm], int(peers), scratch="scratch" in op),
            op=op.removesuffix("_scratch"),
            k=int(k),
            captures=12,
            destroyed=destroyed == "1",
        )
        assert [(point["Copies"], point["Bytes"]) for point in points] == want, key
        rows += len(want)
    assert rows == 624


@given(
    k=st.integers(1, 16),
    peers=st.integers(1, 7),
    scratch=st.booleans(),
    roce=st.booleans(),
    n=st.integers(1, 30),
    op=st.sampled_from(["AllReduce", "AllGather"]),
    destroyed=st.booleans(),
    eager=st.lists(
        st.sampled_from(["AllReduce", "AllGather", "ReduceScatter"]), min_size=1, max_size=4
    ),
    hcomm=st.sampled_from(["8.5", "9.0"]),
)
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_before_the_fixes_every_run_meets_the_closed_form(
    growth_server: GrowthServer,
    *,
    k: int,
    peers: int,
    scratch: bool,
    roce: bool,
    n: int,
    op: str,
    destroyed: bool,
    eager: list[str],
    hcomm: str,
) -> None:
    n = limited(k, peers, n)
    _, *captures = growth_server.run(
        emulate(*HCOMM[hcomm], peers, scratch=scratch, roce=roce),
        op=op,
        k=k,
        captures=n,
        destroyed=destroyed,
        eager=eager,
    )
    context = 2_122_688 if hcomm == "8.5" else 2_122_720
    law = Law(context, k, peers, int(scratch), int(roce), len(set(eager)))
    got = [(point["Copies"], point["Bytes"]) for point in captures]
    assert got == [law.growing(capture + 1) for capture in range(n)]


@given(
    k=st.integers(1, 16),
    peers=st.integers(1, 7),
    scratch=st.booleans(),
    roce=st.booleans(),
    n=st.integers(2, 8),
    destroyed=st.booleans(),
)
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_fixed_hcomm_copies_the_same_each_capture(
    growth_server: GrowthServer,
    *,
    k: int,
    peers: int,
    scratch: bool,
    roce: bool,
    n: int,
    destroyed: bool,
) -> None:
    law = Law(2_122_720, k, peers, int(scratch), int(roce), 1)
    shape = emulate(*HCOMM["9.1 (!2405 + !2502)"], peers, scratch=scratch, roce=roce)
    for op in ("AllReduce", "AllGather"):
        _, *captures = growth_server.run(shape, op=op, k=k, captures=n, destroyed=destroyed)
        got = [(point["Copies"], point["Bytes"]) for point in captures]
        if op == "AllGather" or roce:
            assert got == [law.bounded(capture + 1) for capture in range(n)]
        else:  # one tag for good
            once = Law(2_122_720, 1, peers, int(scratch), 0, 1)
            assert got == [once.bounded(1)] + [(0, 0)] * (n - 1)


@pytest.mark.parametrize(("destroyed", "slope"), [(False, 2 * 16), (True, 0)])
def test_pr_2405_over_roce_grows_while_graphs_are_kept(
    growth_server: GrowthServer, *, destroyed: bool, slope: int
) -> None:
    shape = emulate(*HCOMM["9.1-pre (!2405 only)"], 2, scratch=False, roce=True)
    _, *captures = growth_server.run(shape, op="AllReduce", k=4, captures=6, destroyed=destroyed)
    copies = [point["Copies"] for point in captures]
    assert {after - before for before, after in pairwise(copies[1:])} == {slope}


def test_each_copy_is_framed_and_each_new_tag_allocates(growth_server: GrowthServer) -> None:
    shape = emulate(*HCOMM["8.5"], 3, scratch=True)
    _, *captures = growth_server.run(shape, op="AllReduce", k=5, captures=3)
    for point in captures:
        tags = 5
        assert point["Mallocs"] == tags * (3 + 1)
        assert point["ToHost"] == tags * 2
        assert point["Frames"] == 2 * (point["Copies"] + point["ToHost"] + point["Mallocs"])


def test_a_known_tag_makes_no_copy(growth_server: GrowthServer) -> None:
    shape = emulate(*HCOMM["8.5"], 1, scratch=False)
    one = growth_server.run(shape, op="AllReduce", k=1, captures=0, eager=["AllReduce"])
    many = growth_server.run(shape, op="AllReduce", k=1, captures=0, eager=["AllReduce"] * 5)
    assert one == many


def test_lists_belong_to_the_communicator(growth_server: GrowthServer) -> None:
    shape = emulate(*HCOMM["8.5"], 7, scratch=False)
    runs = [growth_server.run(shape, op="AllReduce", k=4, captures=3) for _ in range(2)]
    assert runs[0] == runs[1]


def test_without_an_eager_operation_the_first_capture_takes_no_lock(
    growth_server: GrowthServer,
) -> None:
    shape = emulate(*HCOMM["8.5"], 1, scratch=False)
    _, *captures = growth_server.run(shape, op="AllReduce", k=16, captures=4, eager=[])
    want = [Law(2_122_688, 16, 1, 0, 0, 0).growing(n + 1)[0] for n in range(4)]
    assert [point["Copies"] for point in captures] == [want[0] - 3, *want[1:]]


def test_collectives_of_different_kinds_share_the_lists(growth_server: GrowthServer) -> None:
    shape = emulate(*HCOMM["8.5"], 1, scratch=False)
    eager = ["AllReduce", "AllGather", "ReduceScatter"]
    _, first = growth_server.run(shape, op="AllReduce", k=2, captures=1, eager=eager)
    law = Law(2_122_688, 2, 1, 0, 0, 3)
    assert (first["Copies"], first["Bytes"]) == law.growing(1)
