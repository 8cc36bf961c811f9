"""Pages of the network: bounded in size and in time whatever answers, nowhere else asked, nothing of them repeated."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import pytest

from capture_canary.report import prometheus
from capture_canary.stack import npu_exporter
from capture_canary.stack.npu_exporter import NpuExporter
from capture_canary.stack.npus import NpusUnknownError

DEADLINE = 0.5
PACE = 0.05
LONG = 10_000
"""Bytes at that pace take 500 s: a deadline that counted from byte to byte would never come."""
READERS: dict[str, Callable[[str], object]] = {
    "npu-exporter": lambda url: NpuExporter(url, deadline=prometheus.DEADLINE).read(),
    "prometheus": lambda url: prometheus.read(url, "worker-1", since=0.0, now=1e9),
}
UNUSABLE = (NpusUnknownError, prometheus.UnreadableError)
OK = b"HTTP/1.1 200 OK\r\n\r\n"


class Server:
    """What it was asked, how much it sent, and where it is."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.heard: list[bytes] = []
        self.sent = 0


@contextmanager
def answering(pieces: Iterable[bytes], *, pace: float = 0.0) -> Iterator[Server]:
    """Say the same to everyone, a piece at a time."""
    stop = threading.Event()
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(0.1)
    server = Server(listening.getsockname()[1])

    def serve() -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError):
                client, _ = listening.accept()
                with client:
                    server.heard.append(client.recv(65536))
                    for piece in pieces:
                        client.sendall(piece)
                        server.sent += len(piece)
                        if pace and stop.wait(pace):
                            return

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield server
    finally:
        stop.set()
        thread.join()
        listening.close()


def drips(what: bytes) -> list[bytes]:
    return [what[n : n + 1] for n in range(len(what))]


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
DRIPPING = {
    "its first line": drips(b"x" * LONG),
    "a header": drips(b"HTTP/1.1 200 OK\r\nX: " + b"x" * LONG),
    "headers, again and again": [b"HTTP/1.1 100 Continue\r\n\r\n"] * LONG,
    "its body": drips(OK + b"x" * LONG),
    "chunks": drips(CHUNKED + b"1\r\nx\r\n" * LONG),
    "TLS: a record said to have 16 KiB": drips(b"\x16\x03\x03\x40\x00" + b"x" * LONG),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("what", DRIPPING)
def test_whatever_drips_is_ended(reader, what, monkeypatch):
    monkeypatch.setattr(prometheus, "DEADLINE", DEADLINE)
    with answering(DRIPPING[what], pace=PACE) as server:
        url = server.url.replace("http", "https") if what.startswith("TLS") else server.url
        begin = time.monotonic()
        with pytest.raises(UNUSABLE):
            READERS[reader](url)
        assert time.monotonic() - begin < LONG * PACE / 20


@pytest.mark.parametrize(
    ("reader", "bound"),
    [("npu-exporter", npu_exporter.MAX_PAGE), ("prometheus", prometheus.MAX_ANSWER)],
)
@pytest.mark.parametrize("head", [OK, CHUNKED], ids=["plain", "chunked"])
def test_no_more_is_read_than_the_bound(reader, bound, head):
    piece = b"x" * (1 << 20)
    if head == CHUNKED:
        piece = b"100000\r\n" + piece + b"\r\n"
    with answering([head, *[piece] * 64]) as server:
        with pytest.raises(UNUSABLE, match=f"over {bound} bytes"):
            READERS[reader](server.url)
        # What is under way in the kernel comes on top.
        assert server.sent < bound + (16 << 20)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_nobody_is_sent_elsewhere(reader, status):
    """Wherever an answer points: the metadata of a cloud, a file, a socket, or just another port."""
    with answering([OK]) as other:
        for place in (f"{other.url}/", "//169.254.169.254/latest", "file:///etc/shadow", "/again"):
            head = f"HTTP/1.1 {status} Go\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n"
            with answering([head.encode()]) as server:
                with pytest.raises(UNUSABLE, match=f"HTTP status {status}"):
                    READERS[reader](server.url)
                assert len(server.heard) == 1
        assert other.heard == []


SECRET = "s3cr3t-of-another-service"  # noqa: S105  # planted
STRANGERS = {
    "a banner": f"SSH-2.0-{SECRET}\r\n",
    "a steered terminal": f"\x1b]0;{SECRET}\x07\x1b[2J\r\n",
    "a status": f"HTTP/1.1 {SECRET} {SECRET}\r\n\r\n",
    "a phrase": f"HTTP/1.1 403 {SECRET}\r\n\r\n",
    "a version": f"HTTP/{SECRET} 200 OK\r\n\r\n",
    "a body": f"HTTP/1.1 200 OK\r\n\r\n{SECRET}",
    "chunks": f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{SECRET}\r\n",
    "JSON": f'HTTP/1.1 200 OK\r\n\r\n{{"AccessKeyId": "{SECRET}", "data": {{"{SECRET}": 1}}}}',
    "another type": f'HTTP/1.1 200 OK\r\n\r\n{{"data": "{SECRET}"}}',
    "samples": f'HTTP/1.1 200 OK\r\n\r\nnpu_chip_info_utilization{{id="0"}} {SECRET}\n',
    "labels": f'HTTP/1.1 200 OK\r\n\r\nnpu_chip_info_utilization{{{SECRET}="\n',
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("answer", STRANGERS.values(), ids=STRANGERS.keys())
def test_what_another_service_says_is_not_repeated(reader, answer):
    """Whoever may choose the address, and read our pages, must not read by us what only this node reaches."""
    with answering([answer.encode()]) as server:
        with pytest.raises(UNUSABLE) as raised:
            READERS[reader](server.url)
        said = str(raised.value)
        assert SECRET not in said
        assert said.isprintable()
        assert len(said) < 300


@pytest.mark.parametrize("reader", READERS)
def test_nothing_but_the_question_is_said(reader, monkeypatch):
    """No credential of ours, and no proxy of the environment is asked."""
    with answering([b"HTTP/1.1 404 x\r\n\r\n"]) as server, answering([OK]) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url.replace("//", "//user:password@"))
        with pytest.raises(UNUSABLE):
            READERS[reader](server.url)
        (question,) = server.heard
        names = {line.partition(b":")[0] for line in question.split(b"\r\n")[1:] if line}
        assert names == {b"Host", b"Accept-Encoding", b"Accept"}
        assert proxy.heard == []
