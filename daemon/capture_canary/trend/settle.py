"""Which verdict alerts go by: one that two in a row agree on, so that an odd probe neither rings nor clears."""

import msgspec

from capture_canary.model import Cause, Evidence, Report, VerdictName


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict in force for alerts, of one stack and kind of evidence."""

    stack: str
    """Its hash."""
    verdict: VerdictName = "unknown"
    cause: Cause | None = None
    candidate: VerdictName | None = None
    """What the last report said, where it disagrees; the next one of its mind puts it in force."""


def settle(before: Settled | None, report: Report, *, stack: str, evidence: Evidence) -> Settled:
    """Return what is settled once a report has come.

    A report of another stack begins anew. `unknown` settles nothing and clears nothing. A trace settles at once: it is
    judged again with each capture of a load, and a server that is not restarted for weeks makes no second one.
    """
    if before is None or before.stack != stack:
        before = Settled(stack=stack)
    if report.verdict == "unknown":
        return before
    if evidence == "trace" or report.verdict in (before.verdict, before.candidate):
        return Settled(stack=stack, verdict=report.verdict, cause=report.cause)
    return msgspec.structs.replace(before, candidate=report.verdict)
