"""Every target reads its seeds, what once was a fault, and a hundred mutants or two, the same ones each time."""

import random
import resource

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz.mutate import mutant
from tests.fuzz.table import TARGETS
from tests.fuzz.target import CRASHES, Target, patience

HANG = 60
"""Seconds until an input counts as hung; the slowest takes some hundredths of one."""
MOST = 256 << 20
"""Bytes that reading small inputs may add to what this process has."""
EVERY = pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)


def feed(target: Target, data: bytes) -> None:
    with patience(HANG):
        target.feed(data)


@pytest.fixture(autouse=True)
def bounded():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10 < MOST


@EVERY
def test_seeds_are_read(target: Target):
    # At least one of them is good: a target that calls everything an error reads nothing.
    assert any([_good(target, seed) for seed in target.seeds()])  # noqa: C419  # all of them are fed


def _good(target: Target, seed: bytes) -> bool:
    try:
        target.run(seed)
    except target.raises:
        return False
    return True


@EVERY
def test_what_once_was_a_fault_is_none(target: Target):
    for path in target.kept():
        feed(target, path.read_bytes())


def test_every_kept_input_is_of_a_target():
    assert {path.name for path in CRASHES.iterdir()} <= TARGETS.keys()


@EVERY
def test_mutants(target: Target):
    seeds = [*target.seeds()]

    @settings(
        max_examples=target.mutants,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
    )
    @given(
        st.sampled_from(seeds), st.integers(0, 1 << 32).map(random.Random), st.binary(max_size=64)
    )
    def each(seed: bytes, chance: random.Random, junk: bytes) -> None:
        data = mutant(seed, chance, tokens=target.tokens, tree=target.json) if seed else junk
        feed(target, data)
        feed(target, junk)

    each()
