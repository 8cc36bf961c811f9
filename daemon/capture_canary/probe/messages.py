"""What a probe's processes say to each other: JSON lines over pipes, typed, and bounded in length.

The runner hands the leader a `Spec` and reads records. The leader gives its ranks orders, one at a time, so that all of
them make the same step of the same series together.
"""

from typing import Literal

import msgspec

from capture_canary import foreign
from capture_canary.model import ArmName, Capture, GraphsFate
from capture_canary.stack.npus import printable

MAX_NOTE = 1000
MAX_LINE = 4096
"""Bytes of a line, its end included: PIPE_BUF of Linux, up to which ranks that share a pipe cannot interleave."""

Collective = Literal["AllReduce", "AllGather"]


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """What sets one series of an arm apart."""

    collective: Collective
    graphs: GraphsFate


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """What the leader is to run: one arm of a probe."""

    workload: str
    arm: ArmName
    devices: tuple[int, ...]
    """The NPU of each rank, as the runtime numbers them in this process."""
    collectives: int
    """Collectives a graph: the k of the growth law."""
    shapes: tuple[int, ...]
    """Elements (fp32) of each collective's payload, one graph each."""
    rounds: int
    kinds: tuple[Kind, ...]
    model: str | None = None
    """vLLM: folder of the model; None: a tiny one with as many layers as `collectives` asks for."""
    profile: str | None = None
    """torch: folder for a profile of rank 0; None: none is made."""
    graph_mode: str | None = None
    """vLLM: its cudagraph_mode; None: the one of the largest graphs that its version has."""
    buffer_mb: int
    """HBM that a communicator takes for each of its two buffers, MB."""
    deadline_seconds: float
    """The leader ends its ranks after that, should the runner not."""
    seed: int | None = None
    """Of the order of shapes within each round; None: as given."""


class Started(msgspec.Struct, frozen=True, kw_only=True, tag="started"):
    """A rank has opened its NPU."""

    rank: int
    pid: int
    device: int
    soc: str
    versions: dict[str, str]
    """Versions by package as the loaded CANN, or the package itself, says, e.g. {"hcomm": "8.5.0"}."""


class Control(msgspec.Struct, frozen=True, kw_only=True, tag="control"):
    """The eager positive control of a rank: H2D copies that the tracer saw; None: no tracer in the process."""

    rank: int
    copies: int | None


class Captured(msgspec.Struct, frozen=True, kw_only=True, tag="captured"):
    """A rank has captured a graph of series `series` (index into the spec's kinds)."""

    rank: int
    series: int
    mode: str | None
    """The expansion mode as HCCL saw it, by the tracer."""
    peers: int | None
    capture: Capture


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    """A rank could not make a step, died in it, or did not answer; it makes no further one."""

    rank: int
    step: str
    reason: str
    code: int | None = None
    """What CANN returned; None where it was not CANN that said so."""
    silent: bool = False
    """It did not answer in time."""
    died: bool = False
    """Its process ended."""


class Noted(msgspec.Struct, frozen=True, kw_only=True, tag="noted"):
    """What whoever reads the verdict has to know of how it was measured."""

    text: str


class Ended(msgspec.Struct, frozen=True, kw_only=True, tag="ended"):
    """The leader has ended all its ranks in good order."""


Record = Started | Control | Captured | Noted | Failed | Ended

_encoder = msgspec.json.Encoder()
_records = msgspec.json.Decoder(Record)
_spec = msgspec.json.Decoder(Spec)


def encode(message: msgspec.Struct) -> bytes:
    """Return the message as one line.

    Raises:
        ValueError: the line would be longer than ranks can write in one piece.
    """
    line = _encoder.encode(message) + b"\n"
    if len(line) > MAX_LINE:
        raise ValueError(f"a {type(message).__name__} of {len(line)} bytes does not fit a line")
    return line


def decode_record(line: bytes) -> Record:
    """Return the record of a line.

    Raises:
        ValueError: the line is not one.
    """
    return _seen(foreign.decode(line, _records))


def _seen(record: Record) -> Record:
    """The record with every text of CANN's or a library's on one line, and without what could steer a terminal."""
    match record:
        case Started():
            versions = {printable(name): printable(text) for name, text in record.versions.items()}
            return msgspec.structs.replace(record, soc=printable(record.soc), versions=versions)
        case Failed():
            step, reason = printable(record.step), printable(record.reason, MAX_NOTE)
            return msgspec.structs.replace(record, step=step, reason=reason)
        case Noted():
            return Noted(text=printable(record.text, MAX_NOTE))
        case Captured(mode=str(mode)) if not mode.isprintable():
            return msgspec.structs.replace(record, mode=printable(mode))
    return record


def decode_spec(text: bytes) -> Spec:
    """Return the spec of a text.

    Raises:
        ValueError: the text is not one.
    """
    return foreign.decode(text, _spec)
