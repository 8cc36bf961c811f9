"""What a log line says of a report."""

from capture_canary.model import Report
from capture_canary.stack.identity import stack_id


def evidence(report: Report) -> dict[str, object]:
    """Return what a log line says of a report."""
    copies, seconds = report.growth.copies, report.growth.seconds
    return {
        "verdict": report.verdict,
        "cause": report.cause,
        "reason": report.reason,
        "mode": report.mode,
        "mode_source": report.mode_source,
        "copies_per_capture": copies.estimate if copies else None,
        "seconds_per_capture": seconds.estimate if seconds else None,
        "matches_law": report.matches_law,
        "control": report.control,
        "stack": stack_id(report.stack),
        "emulated": report.emulated,
    }
