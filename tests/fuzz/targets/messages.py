"""What a probe's children say: records, orders, results."""

import msgspec

from capture_canary import foreign
from capture_canary.kubernetes.exchange import Result
from capture_canary.kubernetes.result import packed
from capture_canary.probe import messages
from capture_canary.probe.messages import Captured, Control, Ended, Failed, Noted, Started
from tests.builders import make_report
from tests.fuzz.target import Target
from tests.making import capture

RECORDS = (
    Started(rank=0, pid=7, device=1, soc="Ascend910_9391", versions={"hcomm": "8.5.0"}),
    Control(rank=1, copies=5),
    Captured(rank=0, series=3, mode="AI_CPU", peers=None, capture=capture(2, 488)),
    Failed(rank=1, step="Open", reason="aclrtSetDevice returned 107001", code=107001),
    Noted(text="the tracer was not loaded"),
    Ended(),
)


def records(data: bytes) -> None:
    record = messages.decode_record(data)
    # A line may be as long as it likes on its way in; on its way out it fits one write.
    again = messages.decode_record(msgspec.json.encode(record))
    assert type(again) is type(record)
    # Cut texts lose the blank that a cut left at their end; after that nothing changes.
    assert messages.decode_record(msgspec.json.encode(again)) == again


def results(data: bytes) -> None:
    """A probe's result in a Job's termination message, or in a file of a gate: decoded, and made to fit again."""
    found = foreign.decode(data, Result)
    report = found.report
    shorter = msgspec.json.decode(
        packed(report, took=found.took, devices=found.devices), type=Result
    ).report
    assert (shorter.verdict, shorter.cause, shorter.emulated) == (
        report.verdict,
        report.cause,
        report.emulated,
    )


TARGETS = (
    Target(
        "probe-record", "a probe's children", records, lambda: [messages.encode(one) for one in RECORDS],
        raises=(ValueError,), json=True, tokens=(b'"type":"', b"captured", b"failed", b"ended"), longest=4096,
    ),
    Target(
        "probe-result", "results of probes in Jobs and images", results,
        lambda: [
            packed(make_report(verdict), took=1.5, devices=2)
            for verdict in ("healthy", "degraded", "mitigated", "unknown")
        ] + [msgspec.json.encode(Result(took=1, devices=2, report=make_report("degraded", captures=3, ranks=1)))],
        raises=(ValueError,), json=True, longest=8192,
    ),
)  # fmt: skip
