"""What comes over a connection to the real server: requests, halves of them, anything."""

import asyncio
import functools
import re
import socket
from typing import NamedTuple

from capture_canary.export.app import make_app
from capture_canary.export.connections import Connection, Connections, Limits
from capture_canary.export.server import Server
from tests.builders import make_report
from tests.export.showing import Daemon
from tests.fuzz.target import Target, scratch

_HEAD = re.compile(rb"HTTP/1\.1 (\d{3}) ")
_ANSWERS = {200, 304, 307, 400, 404, 405, 426}
"""405 for what would write, 307 for a slash too many; never a 5xx."""
_QUIET = 6
"""Turns of the loop without anything to do: all is answered."""
PATHS = ("/", "/metrics", "/explain", "/healthz", "/api/v1/status", "/api/v1/probes?limit=2&since=1", "/api/v1/probes/1", "/static/canary.css?v=1", "/metrics/", "/%00")  # fmt: skip


class Node(NamedTuple):
    """A daemon with a history, and a loop that serves it."""

    loop: asyncio.AbstractEventLoop
    server: Server
    among: Connections


@functools.cache
def node() -> Node:
    daemon = Daemon(scratch("http"))
    daemon.probed(make_report("degraded", captures=2, ranks=1))
    server = Server(make_app(daemon.source), host="127.0.0.1", port=0)
    server._config.load()  # noqa: SLF001  # as its start does, of which the rest is the listening socket
    return Node(asyncio.new_event_loop(), server, Connections(4))


async def talk(data: bytes) -> bytes:
    """Say it all at once; return what the server answers until it has nothing more to say."""
    one = node()
    client, theirs = socket.socketpair()
    client.setblocking(False)
    theirs.setblocking(False)
    with client:
        state = one.server._state  # noqa: SLF001  # where uvicorn keeps its tasks
        connection = Connection(one.server._config, state, Limits(), one.among)  # noqa: SLF001  # as the server does
        opening = asyncio.ensure_future(connection.open(theirs, None))
        client.send(data)
        heard, quiet = b"", 0
        while quiet < _QUIET:
            quiet += 1
            await asyncio.sleep(0)
            if state.tasks:
                await asyncio.wait(state.tasks)
                quiet = 0
            try:
                while piece := client.recv(1 << 16):
                    heard, quiet = heard + piece, 0
            except (BlockingIOError, ConnectionResetError):
                continue
    await opening
    while len(one.among):  # noqa: ASYNC110 - until it has closed its socket
        await asyncio.sleep(0)
    return heard


def request(data: bytes) -> None:
    heard = node().loop.run_until_complete(talk(data))
    if not heard:
        return
    assert heard.startswith(b"HTTP/1.1 ")
    status = _HEAD.match(heard)
    assert status
    assert int(status[1]) in _ANSWERS, heard[:200]
    assert b"Traceback" not in heard
    head = heard.partition(b"\r\n\r\n")[0].lower()
    assert int(status[1]) == 400 or b"\r\nx-content-type-options: nosniff" in head
    for injected in (b"\r\nset-cookie:", b"\r\naccess-control-"):
        assert injected not in head


TARGETS = (
    Target(
        "http", "connections to the pages and metrics", request, mutants=100, longest=2048,
        seeds=lambda: [
            *(f"GET {path} HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n".encode() for path in PATHS),
            b"GET /metrics HTTP/1.0\r\nAccept: application/openmetrics-text; version=1.0.0\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            b"HEAD / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", b"GET / HT",
        ],
        tokens=(
            b"GET ", b"HEAD ", b" HTTP/1.1\r\n", b"Host: ", b"\r\n\r\n", b"Expect: 100-continue\r\n", b"Transfer-Encoding: chunked\r\n",
            b"Content-Length: ", b"Connection: close\r\n", b"If-None-Match: *\r\n", b"Range: bytes=0-1\r\n", b"/api/v1/", b"%0d%0aSet-Cookie:", b"..%2f", b"?limit=", b"&since=",
        ),
    ),
)  # fmt: skip
