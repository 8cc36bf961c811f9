"""The growth law: how many H2D copies HCCL makes in the n-th capture, in closed form.

Source: hcomm's own communicator sources (8.5, 9.0, PR 2405, PR 2405 + 2502), run on a CPU with their H2D
`aclrtMemcpy` calls counted; tests/data/hcomm-growth/h2d-copies.csv holds the counts. No time is in it.

What the code does: a captured collective gets a tag of its own; hcomm up to 9.0 copies, for every new tag, the whole
list of known tags of each linked peer, and the list of scratch memory where the collective has any. One tag more makes
every later tag dearer: P + S copies a tag, k tags a capture, so (P + S)·k² copies more with each capture.

In the arguments: k is the number of collectives in a graph, on one communicator; peers (P) the ranks that the
collective's algorithm links; scratch (S) whether it has scratch memory; tags (e) the tags listed before the first
capture, 1 after one eager collective; roce_links (R) is 2P where the links are RoCE, else 0; n counts captures from 1.
"""

from collections.abc import Sequence
from typing import NamedTuple

MAX_PEERS = 63
"""Peers that a law may be fitted with: a mesh links the ranks of one server, a ring two."""
MAX_TAGS_BEFORE = 63
"""Tags before the first capture that a law may be fitted with: one a kind of eager collective."""


class Point(NamedTuple):
    """What one capture copied."""

    tags_before: int
    """Collectives captured before it, in its series."""
    k: int
    """Collectives in this capture."""
    copies: int


def growing(
    k: int, peers: int, n: int, *, scratch: bool = False, tags: int = 1, roce_links: int = 0
) -> int:
    """Copies in capture n with hcomm 8.5 and 9.0, any collective; with PR 2405 alone, kept AllGather."""
    lists = peers + scratch
    listed = tags * k + (n - 1) * k * k + k * (k + 1) // 2
    return k * (4 + peers + roce_links) + lists * listed + _order_notify(n)


def scratch_only(k: int, peers: int, n: int, *, scratch: bool = False, tags: int = 1) -> int:
    """Copies in capture n of destroyed AllGather with PR 2405 alone.

    Destroying a graph empties its peers' lists, not the list of scratch memory.
    """
    own = tags * k + k * (k + 1) // 2
    return k * (4 + peers) + peers * own + scratch * (own + (n - 1) * k * k) + _order_notify(n)


def fixed_all_gather(k: int, peers: int, n: int, *, scratch: bool = False) -> int:
    """Copies in capture n of AllGather with hcomm 9.1.0: at most two nodes a list, however long it is."""
    return k * (4 + 3 * peers + 2 * scratch) + _order_notify(n)


def fixed_all_reduce(peers: int, n: int, *, scratch: bool = False) -> int:
    """Copies in capture n of AllReduce with PR 2405: one tag for all captures, so none after the first."""
    return 5 + 3 * peers + 2 * scratch if n == 1 else 0


def slope(k: int, peers: int, *, scratch: bool = False) -> int:
    """Return how many copies more each further capture makes, (P + S)·k²."""
    return (peers + scratch) * k * k


def slope_bytes(k: int, peers: int, *, scratch: bool = False) -> int:
    """Return the bytes of those copies: a node of a peer's list has 11,984 B, one of the scratch list 304 B."""
    return k * k * (11_984 * peers + 304 * scratch)


def matches(points: Sequence[Point]) -> bool | None:
    """Whether counted copies are exactly those of the growth law, for some P, S, R and e within reason.

    Give captures from the second on: the first makes one copy more. k may differ from capture to capture, as in a
    server. None where fewer than two captures are given: one point meets any law.
    """
    if len(points) < 2:  # noqa: PLR2004 - two points make a slope
        return None
    lists = _lists_grown(points)
    if lists is None:
        return False
    full = any(
        _tags_fit(points, 4 + peers + links, listed=lists, grown=lists)
        for peers in (lists, lists - 1)
        if 1 <= peers <= MAX_PEERS
        for links in (0, 2 * peers)
    )
    # With PR 2405 alone destroyed graphs leave only the scratch list growing, whatever the number of peers.
    return full or (
        lists == 1
        and any(
            _tags_fit(points, 4 + peers, listed=peers + 1, grown=1)
            for peers in range(1, MAX_PEERS + 1)
        )
    )


def _order_notify(n: int) -> int:
    """A communicator's first captured collective makes one copy more."""
    return 1 if n == 1 else 0


def _spread(point: Point) -> int:
    """Twice the tags that a tag of this capture finds listed, on average, and one less."""
    return 2 * point.tags_before + point.k


def _lists_grown(points: Sequence[Point]) -> int | None:
    """How many lists grow, P + S: copies a collective rise by that for each tag; None unless exactly so."""
    first, last = points[0], points[-1]
    run = first.k * last.k * (_spread(last) - _spread(first))
    rise = 2 * (last.copies * first.k - first.copies * last.k)
    if run <= 0 or rise % run:
        return None
    return rise // run


def _tags_fit(points: Sequence[Point], fixed: int, *, listed: int, grown: int) -> bool:
    """Whether one number of tags before the first capture explains every point."""
    before: set[int] = set()
    for point in points:
        own = point.k * (point.k + 1) // 2
        rest = point.copies - point.k * fixed - listed * own - grown * point.k * point.tags_before
        if rest < 0 or rest % (listed * point.k):
            return False
        before.add(rest // (listed * point.k))
    return len(before) == 1 and before.pop() <= MAX_TAGS_BEFORE
