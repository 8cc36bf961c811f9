"""What came of a probe, remembered: in the history, and on the board for pages and metrics."""

import time

import msgspec

from capture_canary.export.state import FailureReason
from capture_canary.model import Report
from capture_canary.service.board import Board
from capture_canary.stack.identity import stack_id
from capture_canary.store import Store


def remember(
    board: Board,
    store: Store,
    report: Report,
    *,
    took: float,
    devices: int,
    failure: FailureReason | None = None,
) -> None:
    """Remember a report.

    Args:
        board: where pages and metrics look.
        store: the history.
        report: the report.
        took: how long the probe took, s.
        devices: NPUs that it held.
        failure: how it broke off; None where it did not.
    """
    now = time.time()
    stack = stack_id(report.stack)
    store.add_probe(report, at=now, stack=stack, took=took)
    store.retire(
        "probe",
        keep={stack},
        emulated=report.emulated,
        at=now,
        reason="probes here run another stack now",
    )
    board.state(
        lambda state: msgspec.structs.replace(
            state.after(
                report,
                evidence="probe",
                ended=now,
                seconds=took,
                devices=devices,
                failure=failure_reason(report, failure),
            ),
            stack=report.stack,
        )
    )


def failure_reason(report: Report, kind: FailureReason | None) -> FailureReason:
    """Return the metric's word for why a probe came to no verdict."""
    if report.cause == "tracer_blind":
        return "tracer_blind"
    return kind or ("too_little" if report.series else "other")
