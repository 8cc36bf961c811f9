"""A daemon to look at, and a server that shows it."""

import http.client
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
import trustme
from tests.export.test_metrics import START

from capture_canary.export.app import make_app
from capture_canary.export.connections import Limits
from capture_canary.export.server import Server
from capture_canary.export.source import Source
from capture_canary.export.state import State
from capture_canary.model import Report
from capture_canary.service.board import View
from capture_canary.stack.identity import stack_id
from capture_canary.store import Store

NOW = 1_790_000_000.0
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&<!--"


class Daemon:
    """What pages ask."""

    def __init__(self, folder: Path) -> None:
        self.view = View(state=START)
        self.store = Store(folder)
        self.alive = self.ready = True

    @property
    def source(self) -> Source:
        return Source(
            view=lambda: self.view,
            store=self.store,
            node="node-7",
            alive=lambda: self.alive,
            ready=lambda: self.ready,
        )

    def show(self, **fields: Any) -> None:
        self.view = msgspec.structs.replace(self.view, **fields)

    def state(self, state: State) -> None:
        self.show(state=state)

    def probed(self, report: Report, *, at: float = NOW - 100, took: float = 2.0) -> None:
        """Have probed, and remember it."""
        self.store.add_probe(report, at=at, stack=stack_id(report.stack), took=took)
        after = self.view.state.after(report, evidence="probe", ended=at, seconds=took, devices=2)
        self.show(state=msgspec.structs.replace(after, stack=report.stack))


@contextmanager
def serving(
    daemon: Daemon,
    *,
    limits: Limits | None = None,
    tls: Callable[[], ssl.SSLContext | None] = lambda: None,
    users: Callable[[], Mapping[str, bytes]] = dict,
) -> Iterator[Server]:
    app = make_app(daemon.source, users=users)
    one = Server(app, host="127.0.0.1", port=0, limits=limits, tls=tls)
    one.start()
    try:
        yield one
    finally:
        one.stop()


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: str


class Listening(Protocol):
    """A server, in this process or another."""

    @property
    def port(self) -> int:
        """Where it listens on the loopback."""
        ...


def get(running: Listening, path: str, method: str = "GET", **headers: str) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
    try:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read().decode())
    finally:
        connection.close()


def connected_tls(
    running: Server,
    authority: trustme.CA,
    *,
    own: trustme.LeafCert | None = None,
    most: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
) -> bytes:
    """Read a page over TLS; return the server's certificate."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.maximum_version = most
    if own is not None:
        own.configure_cert(context)
    plain = socket.create_connection(("127.0.0.1", running.port), timeout=30)
    with plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as client:
        client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        answer = client.recv(1000)
        if not answer.startswith(b"HTTP/1.1 200"):
            raise ConnectionResetError("no answer")
        found = client.getpeercert(binary_form=True)
    assert found is not None
    return found
