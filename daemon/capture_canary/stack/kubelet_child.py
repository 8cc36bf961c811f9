"""A child process: asks the kubelet's PodResources service which pod has which NPU, prints it as JSON.

Needs the extra `kubelet` (grpcio). The answer has four kinds of messages of which six fields matter here, so they are
read as wire format rather than by generated code.
"""

import re
import sys
from collections.abc import Iterator

import msgspec

from capture_canary.stack.helpers import DEADLINE, Answer, PodOfDevices

METHOD = "/v1.PodResourcesLister/List"
MAX_ANSWER = 16 << 20
RESOURCES = "huawei.com/"

_DEVICE = re.compile(r"(?:Ascend[0-9A-Za-z]*|npu)-([0-9]{1,4})", re.ASCII)
"""Of MindCluster's device plugin, for whole NPUs; the id of a virtual one has more parts."""
_LENGTH, _VARINT, _FIXED64, _FIXED32 = 2, 0, 1, 5


def main(argv: list[str]) -> int:
    """Args: the socket."""
    sys.stdout.buffer.write(msgspec.json.encode(_answer(argv[0])))
    return 0


def _answer(socket: str) -> Answer:
    try:
        import grpc  # noqa: PLC0415  # an extra
    except ImportError:
        return Answer(error="grpcio is not installed: pip install 'capture-canary[kubelet]'")
    options = [("grpc.max_receive_message_length", MAX_ANSWER)]
    try:
        with grpc.insecure_channel(f"unix:{socket}", options=options) as channel:
            ask = channel.unary_unary(METHOD, request_serializer=bytes, response_deserializer=bytes)
            return Answer(pods=pods(ask(b"", timeout=DEADLINE / 2)))
    except grpc.RpcError as error:
        return Answer(error=f"the kubelet at {socket}: {error.code().name}: {error.details()}")
    except ValueError as error:
        return Answer(error=f"the kubelet at {socket}: {error}")


def pods(response: bytes) -> list[PodOfDevices]:
    """Return the pods with NPUs in a ListPodResourcesResponse.

    Raises:
        ValueError: it is none.
    """
    found = []
    for pod in _messages(response, 1):
        devices: set[int] = set()
        for container in _messages(pod, 3):
            for given in _messages(container, 2):
                if _text(given, 1).startswith(RESOURCES):
                    ids = [one.decode(errors="replace") for one in _messages(given, 2)]
                    devices |= {int(match[1]) for i in ids if (match := _DEVICE.fullmatch(i))}
        if devices:
            found.append(
                PodOfDevices(name=_text(pod, 1), namespace=_text(pod, 2), devices=sorted(devices))
            )
    return found


def _text(message: bytes, field: int) -> str:
    return next(_messages(message, field), b"").decode(errors="replace")


def _messages(message: bytes, wanted: int) -> Iterator[bytes]:
    """Yield each value of a field that has a length: a text or a message."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == _LENGTH:
            size, at = _varint(message, at)
            if at + size > len(message):
                raise ValueError("its answer is cut")
            if key >> 3 == wanted:
                yield message[at : at + size]
            at += size
        elif kind == _VARINT:
            _, at = _varint(message, at)
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        else:
            raise ValueError("its answer is no protocol buffer")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            raise ValueError("its answer is cut")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004  # the last byte of a varint
            return value, at
    raise ValueError("its answer has a number without end")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
