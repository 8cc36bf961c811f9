"""The HTTP server: what it says, and that nobody can hold it up."""

import http.client
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import msgspec
import pytest
from tests.export.test_metrics import DEGRADED, START

from capture_canary.export import server
from capture_canary.export.server import NotServingError, Server, make_app
from capture_canary.export.state import State


class Daemon:
    """What the server asks."""

    def __init__(self) -> None:
        self.state: State = START
        self.alive = True


@pytest.fixture
def daemon() -> Daemon:
    return Daemon()


@pytest.fixture
def running(daemon: Daemon) -> Iterator[Server]:
    app = make_app(lambda: daemon.state, alive=lambda: daemon.alive)
    one = Server(app, host="127.0.0.1", port=0)
    one.start()
    yield one
    one.stop()


def get(running: Server, path: str, **headers: str) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    body = response.read().decode()
    connection.close()
    return response.status, response.headers["content-type"], body


def test_metrics_in_the_format_asked_for(running, daemon):
    daemon.state = DEGRADED
    status, kind, body = get(running, "/metrics")
    assert (status, kind.split(";")[0]) == (200, "text/plain")
    assert 'capture_canary_rtmemcpy_growth{arm="as_configured",' in body
    status, kind, body = get(
        running, "/metrics", Accept="application/openmetrics-text;version=1.0.0"
    )
    assert (status, kind.split(";")[0]) == (200, "application/openmetrics-text")
    assert body.endswith("# EOF\n")


def test_health_is_the_loops_not_the_probes(running, daemon):
    daemon.state = DEGRADED
    assert get(running, "/healthz")[::2] == (200, "ok\n")
    daemon.alive = False
    assert get(running, "/healthz")[::2] == (503, "late\n")


def test_page_says_the_verdict_in_words(running, daemon):
    body = get(running, "/")[2]
    assert "probe: unknown" in body
    assert "emulated" in body
    daemon.state = DEGRADED
    body = get(running, "/")[2]
    assert "probe: degraded (aicpu_resource_list)" in body
    assert "256 more H2D copies" in body
    assert "CANN 9.1.0 or later" in body


def test_page_escapes_what_others_wrote(running, daemon):
    evil = msgspec.structs.replace(DEGRADED.reports["probe"], reason="<script>x</script>")
    daemon.state = START.after(evil, evidence="probe", ended=1.0)
    body = get(running, "/")[2]
    assert "<script>" not in body
    assert "&lt;script&gt;" in body


@pytest.mark.parametrize("path", ["/nothing", "/metrics/../..", "/%00"])
def test_other_paths(running, path):
    assert get(running, path)[0] == 404


def test_huge_headers_are_refused(running):
    with socket.create_connection(("127.0.0.1", running.port), timeout=30) as client:
        client.sendall(b"GET / HTTP/1.1\r\nX: " + b"a" * 4 * server.MAX_HEADERS)
        assert client.recv(100).startswith(b"HTTP/1.1 400")


def ended(client: socket.socket) -> bool:
    """Whether the server ends the connection; it never answers what is half a request."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def test_who_dawdles_loses_the_connection(daemon, monkeypatch):
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.2)
    one = Server(make_app(lambda: daemon.state, alive=lambda: True), host="127.0.0.1", port=0)
    one.start()
    clients: list[socket.socket] = []
    try:
        with ExitStack() as stack:
            for _ in range(server.MAX_CONNECTIONS):
                address = ("127.0.0.1", one.port)
                client = stack.enter_context(socket.create_connection(address, timeout=30))
                client.sendall(b"GET / HT")
                clients.append(client)
            assert {ended(client) for client in clients} == {True}
        assert get(one, "/healthz")[0] == 200
    finally:
        one.stop()


def test_a_taken_port_is_said(running):
    other = Server(make_app(lambda: START, alive=lambda: True), host="127.0.0.1", port=running.port)
    with pytest.raises(NotServingError, match=f"127.0.0.1:{running.port}"):
        other.start()


def test_a_stopped_server_frees_its_port(daemon):
    one = Server(make_app(lambda: daemon.state, alive=lambda: True), host="127.0.0.1", port=0)
    one.start()
    port = one.port
    one.stop()
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", port))
