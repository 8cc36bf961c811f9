"""The closed forms against counts that hcomm's own sources made."""

import csv
import itertools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capture_canary.trend import law
from capture_canary.trend.law import Point

COUNTS = Path(__file__).parents[1] / "data" / "hcomm-growth" / "h2d-copies.csv"


class Run(NamedTuple):
    hcomm: str
    op: str
    k: int
    peers: int
    destroyed: bool

    @property
    def scratch(self) -> bool:
        return self.op.endswith("_scratch")

    @property
    def grows(self) -> bool:
        before_fixes = self.hcomm in ("8.5", "9.0")
        return before_fixes or (
            self.hcomm.startswith("9.1-pre")
            and self.op.startswith("AllGather")
            and (not self.destroyed or self.scratch)
        )

    def copies(self, n: int) -> int:
        if self.hcomm in ("8.5", "9.0"):
            return law.growing(self.k, self.peers, n, scratch=self.scratch)
        if self.op.startswith("AllReduce"):
            return law.fixed_all_reduce(self.peers, n, scratch=self.scratch)
        if self.hcomm.startswith("9.1 "):
            return law.fixed_all_gather(self.k, self.peers, n, scratch=self.scratch)
        if self.destroyed:
            return law.scratch_only(self.k, self.peers, n, scratch=self.scratch)
        return law.growing(self.k, self.peers, n, scratch=self.scratch)


class Row(NamedTuple):
    capture: int
    copies: int
    size: int


def measured() -> Iterator[tuple[Run, list[Row]]]:
    runs: defaultdict[Run, list[Row]] = defaultdict(list)
    with COUNTS.open() as file:
        for row in csv.DictReader(file):
            run = Run(
                row["hcomm"],
                row["op"],
                int(row["collectives_per_graph"]),
                int(row["peers"]),
                row["destroyed"] == "1",
            )
            runs[run].append(
                Row(int(row["capture"]), int(row["h2d_copies"]), int(row["h2d_bytes"]))
            )
    yield from runs.items()


RUNS = dict(measured())


def test_the_counts_are_all_there():
    assert len(RUNS) == 192
    assert all([row.capture for row in rows] == list(range(13)) for rows in RUNS.values())


def test_closed_forms_give_every_count():
    wrong = [
        (run, row)
        for run, rows in RUNS.items()
        for row in rows
        if row.capture > 0 and run.copies(row.capture) != row.copies
    ]
    assert wrong == []


def test_slopes_of_copies_and_bytes_are_the_measured_ones():
    for run, rows in RUNS.items():
        if run.hcomm in ("8.5", "9.0"):
            steps = {
                (b.copies - a.copies, b.size - a.size) for a, b in itertools.pairwise(rows[2:])
            }
            assert steps == {
                (
                    law.slope(run.k, run.peers, scratch=run.scratch),
                    law.slope_bytes(run.k, run.peers, scratch=run.scratch),
                )
            }, run


def test_what_grew_meets_the_law_and_nothing_else_does():
    for run, rows in RUNS.items():
        points = [Point((row.capture - 1) * run.k, run.k, row.copies) for row in rows[2:]]
        assert law.matches(points) is run.grows, run
        assert law.matches(points[:2]) is run.grows, run


def test_one_point_meets_any_law():
    assert law.matches([]) is None
    assert law.matches([Point(16, 16, 488)]) is None


@pytest.mark.parametrize(("n", "copies"), [(1, 233), (2, 488), (3, 744), (10, 2536), (30, 7656)])
def test_two_ranks_sixteen_collectives(n, copies):
    assert law.growing(16, 1, n) == copies


sizes = st.lists(st.integers(1, 16), min_size=2, max_size=8)


@given(
    ks=sizes,
    peers=st.integers(1, 15),
    scratch=st.booleans(),
    tags=st.integers(0, 8),
    roce=st.booleans(),
)
def test_graphs_of_any_sizes_meet_the_law(ks, peers, scratch, tags, roce):
    points = server(ks, peers=peers, scratch=scratch, tags=tags, roce=roce)
    assert law.matches(points) is True


@given(
    ks=st.lists(st.integers(1, 16), min_size=3, max_size=8),
    peers=st.integers(1, 15),
    where=st.integers(0, 7),
    off=st.integers(-3, 3).filter(bool),
)
def test_a_count_that_is_off_breaks_the_law(ks, peers, where, off):
    points = server(ks, peers=peers, scratch=False, tags=1, roce=False)
    index = where % len(points)
    points[index] = points[index]._replace(copies=max(0, points[index].copies + off))
    assert law.matches(points) is False


@pytest.mark.parametrize(
    ("peers", "tags", "fits"),
    [(1, 1, True), (63, 1, True), (64, 1, False), (1, 0, True), (1, 63, True), (1, 64, False)],
)
def test_the_law_is_fitted_with_no_more_peers_and_tags_than_there_are(peers, tags, fits):
    # With RoCE, which no other number of tags looks like.
    points = server([3, 2, 3], peers=peers, scratch=False, tags=tags, roce=True)
    assert law.matches(points) is fits


@pytest.mark.parametrize(("peers", "fits"), [(1, True), (63, True), (64, False)])
def test_a_scratch_list_that_grows_alone_has_any_number_of_peers(peers, fits):
    points = []
    for k, before in ((3, 0), (2, 3), (3, 5)):
        own = k + k * (k + 1) // 2
        points.append(Point(before, k, k * (4 + peers) + (peers + 1) * own + k * before))
    assert [law.scratch_only(3, peers, n, scratch=True) for n in (2, 3)] == [
        points[0].copies + 9 * n for n in (1, 2)
    ]
    assert law.matches(points) is fits


@given(sizes, st.integers(0, 1000))
def test_constant_copies_a_collective_are_not_the_law(ks, each):
    points = [Point(sum(ks[:i]), k, each * k) for i, k in enumerate(ks)]
    assert law.matches(points) is False


def server(ks: list[int], *, peers: int, scratch: bool, tags: int, roce: bool) -> list[Point]:
    """Count tag by tag what graphs of these sizes copy: each tag its own blocks and every list it is put on."""
    points: list[Point] = []
    listed = tags
    for k in ks:
        before, copies = listed, 0
        for _ in range(k):
            listed += 1
            copies += 4 + peers + (2 * peers if roce else 0) + (peers + scratch) * listed
        points.append(Point(before - tags, k, copies))
    return points


def test_without_a_word_there_is_neither_scratch_memory_nor_a_link():
    """Four collectives, three peers; by hand."""
    assert law.growing(4, 3, 2) == 4 * 7 + 3 * (4 + 16 + 10)
    assert law.scratch_only(4, 3, 2) == 4 * 7 + 3 * (4 + 10)
    assert law.fixed_all_gather(4, 3, 2) == 4 * 13
    assert law.fixed_all_reduce(3, 1) == 14
    assert law.slope(4, 3) == 48
    assert law.slope_bytes(4, 3) == 48 * 11_984


def test_each_link_takes_a_copy_a_collective():
    with_links, without = (law.growing(4, 3, 2, roce_links=links) for links in (6, 0))
    assert with_links - without == 4 * 6


def test_lists_of_nobody_are_not_the_law():
    """One list that grows, no peer, and no tag before the first capture."""
    alone = [Point(n * 2, 2, 2 * 4 + 3 + n * 4) for n in range(4)]
    assert law.matches(alone) is False


def test_captures_that_begin_alike_and_copy_differently_are_not_the_law():
    assert law.matches([Point(4, 2, 30), Point(4, 2, 40)]) is False
    assert law.matches([Point(4, 2, 40), Point(4, 2, 30)]) is False


def test_no_series_begins_with_less_than_no_tag():
    assert law.matches([Point(0, 1, 6), Point(1, 1, 7)]) is True
    assert law.matches([Point(0, 1, 5), Point(1, 1, 6)]) is False
