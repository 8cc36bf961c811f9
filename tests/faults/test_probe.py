"""Faults of CANN and of a probe's children: unknown, with the reason, in time; nothing left; the next probe knows."""

import time
from pathlib import Path

import pytest

from tests.faults.node import injects, nothing_left
from tests.faults.table import PROBES, ProbeFault
from tests.service.parts import Parts

DEADLINE = 6
"""Of what hangs: long enough to come that far on a busy machine."""
LONG = 60
GRACE = 2 + 5
"""TERM_GRACE and KILL_GRACE of probe/children.py."""


@injects(*(fault.name for fault in PROBES))
@pytest.mark.parametrize("fault", PROBES, ids=[fault.name for fault in PROBES])
def test_fault_of_a_probe(fault: ProbeFault, tmp_path: Path):
    deadline = DEADLINE if fault.hangs else LONG
    with nothing_left(fault.emulate):
        parts = Parts(
            tmp_path,
            fault.emulate,
            fault=fault.fault,
            probe__deadline=f"{deadline}s",
            probe__ranks=str(fault.ranks),
        )
        begin = time.monotonic()
        state = parts.attempt()
        took = time.monotonic() - begin
        (row,) = parts.store.probes()
        report = state.reports["probe"]

        assert report.verdict == "unknown"
        assert fault.reason in report.reason
        assert took < deadline + GRACE
        assert (state.totals.runs, state.totals.failures) == (1, {fault.kind: 1})
        assert (row.verdict, row.reason) == ("unknown", report.reason)
        assert parts.board.view.running_since is None
        parts.store.close()

        again = Parts(tmp_path, fault.emulate, probe__deadline=f"{LONG}s")
        assert again.latch.why() is None
        assert again.attempt().reports["probe"].verdict == "degraded"
        again.store.close()
