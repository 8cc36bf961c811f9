"""The HTTP server: what it says, and that nobody can hold it up."""

import contextlib
import errno
import gc
import http.client
import resource
import socket
import ssl
import struct
import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import trustme
from tests.export.showing import Daemon, get, serving
from tests.export.test_metrics import DEGRADED

from capture_canary.export.app import make_app
from capture_canary.export.connections import Connection, Limits
from capture_canary.export.exposition import Exposition
from capture_canary.export.server import NotServingError, Server

CROWD = 1000


def test_metrics_in_the_format_asked_for(running, daemon):
    daemon.state(DEGRADED)
    answer = get(running, "/metrics")
    assert (answer.status, answer.headers["content-type"].split(";")[0]) == (200, "text/plain")
    assert 'capture_canary_rtmemcpy_growth{arm="as_configured",' in answer.body
    answer = get(running, "/metrics", Accept="application/openmetrics-text;version=1.0.0")
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.body.endswith("# EOF\n")


@pytest.mark.parametrize("version", ["x", "1.x", "2.x", "1.0.0.x", "", "9" * 5000, "0.0.1"])
def test_metrics_in_a_version_that_is_none(running, version):
    for kind in ("application/openmetrics-text", "text/plain"):
        answer = get(running, "/metrics", Accept=f"{kind};version={version}")
        assert (answer.status, "capture_canary_build_info" in answer.body) == (200, True)


def test_versions_without_end_are_not_kept(daemon):
    exposition = Exposition(lambda: daemon.view)
    for number in range(100):
        exposition.scrape(f"application/openmetrics-text; version=1.0.{number}")
    assert len(exposition._made) < 10  # noqa: SLF001  # what grows


def test_metrics_follow_the_state_and_the_view(running, daemon):
    assert 'verdict="degraded"} 1.0' not in get(running, "/metrics").body
    daemon.state(DEGRADED)
    assert 'verdict="degraded"} 1.0' in get(running, "/metrics").body
    assert "capture_canary_probing_paused 0.0" in get(running, "/metrics").body
    daemon.show(paused=True)
    assert "capture_canary_probing_paused 1.0" in get(running, "/metrics").body


def test_health_is_the_loops_not_the_probes(running, daemon):
    daemon.state(DEGRADED)
    assert get(running, "/healthz")[::2] == (200, "ok\n")
    daemon.alive = False
    assert get(running, "/healthz")[::2] == (503, "late\n")


def test_ready_once_the_loop_has_begun(running, daemon):
    daemon.ready = False
    assert (get(running, "/readyz").status, get(running, "/healthz").status) == (503, 200)
    daemon.ready = True
    assert get(running, "/readyz")[::2] == (200, "ready\n")


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/metrics/../..",
        "/%00",
        "/static/",
        "/static/../app.py",
        "/static/%2e%2e/app.py",
    ],
)
def test_other_paths(running, path):
    assert get(running, path).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "TRACE"])
def test_nothing_is_written(running, method):
    assert get(running, "/", method).status == 405


@pytest.mark.parametrize("path", ["/", "/metrics", "/api/v1/status", "/nothing", "/healthz"])
def test_every_answer_forbids_what_it_does_not_need(running, path):
    headers = get(running, path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert "unsafe" not in headers["content-security-policy"]


def test_what_clients_do_wrong_fills_no_log(running, capfd):
    for wrong in (
        b"\0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    ):
        with connected(running) as client:
            client.sendall(wrong)
            assert client.recv(100).startswith(b"HTTP/1.1 ")
    assert capfd.readouterr() == ("", "")


def test_huge_headers_are_refused(running):
    with connected(running) as client:
        client.sendall(b"GET / HTTP/1.1\r\nX: " + b"a" * 4 * Limits().header_bytes)
        assert client.recv(100).startswith(b"HTTP/1.1 400")


def connected(running: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", running.port), timeout=30)


def ended(client: socket.socket) -> bool:
    """Whether the server ends the connection; it never answers what is half a request."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("said", [b"", b"GET / HT"], ids=["silent", "half a request"])
def test_who_says_no_whole_request_in_time_is_put_out(daemon, said):
    with (
        serving(daemon, limits=Limits(request_seconds=0.2)) as running,
        connected(running) as client,
    ):
        client.sendall(said)
        assert ended(client)
        assert get(running, "/healthz").status == 200


def test_a_request_in_drops_gets_no_more_time_than_a_whole_one(daemon):
    with (
        serving(daemon, limits=Limits(request_seconds=0.5)) as running,
        connected(running) as client,
    ):
        client.settimeout(0.05)
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 200:
                client.sendall(b"X")
                sent += 1
                try:
                    assert client.recv(1) == b""
                    break
                except TimeoutError:
                    continue
        assert 1 < sent < 150


def test_an_idle_connection_is_kept_for_its_time_only(daemon):
    with serving(daemon, limits=Limits(idle_seconds=0.5)) as running:
        client = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
        client.connect()
        first = client.sock
        for _ in range(3):
            client.request("GET", "/healthz")
            assert client.getresponse().read() == b"ok\n"
        assert client.sock is first
        assert ended(first)
        client.close()


def connections_kept() -> int:
    gc.collect()
    return sum(isinstance(one, Connection) for one in gc.get_objects())


@pytest.mark.parametrize("reset", [False, True], ids=["closes", "resets"])
@pytest.mark.parametrize(
    "said",
    [b"", b"GET / HT", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", b"no HTTP\r\n\r\n"],
    ids=["silent", "half a request", "a request", "no request"],
)
def test_nothing_is_kept_of_who_left(running, said, reset):
    before = connections_kept()
    for _ in range(20):
        with connected(running) as client:
            client.sendall(said)
            answer = b""
            while said.endswith(b"\r\n\r\n") and not answer.endswith((b"ok\n", b"received.")):
                answer += client.recv(1000)
            if reset:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    deadline = time.monotonic() + 30
    while (kept := connections_kept()) > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert kept <= before


@pytest.fixture
def descriptors():
    """A crowd needs a descriptor for each end."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * CROWD + 200
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"needs {wanted} descriptors, the hard limit is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("descriptors")
@pytest.mark.parametrize("said", [b"", b"GET /metrics HT"], ids=["idle", "half a request"])
def test_a_crowd_does_not_hold_up_a_scrape(daemon, said):
    with serving(daemon) as running, ExitStack() as stack:
        for _ in range(CROWD):
            stack.enter_context(connected(running)).sendall(said)
        assert get(running, "/metrics").status == 200
        assert len(running.connections) <= Limits().connections


def test_slow_readers_do_not_hold_up_a_scrape(daemon):
    daemon.state(DEGRADED)
    with serving(daemon) as running, ExitStack() as stack:
        for _ in range(2 * Limits().connections):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            client.settimeout(30)
            client.connect(("127.0.0.1", running.port))
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 200)
        assert get(running, "/metrics").status == 200


def test_a_client_in_its_handshake_counts_and_goes_as_any_other(daemon):
    authority = trustme.CA()
    context = ssl.create_default_context()
    authority.configure_trust(context)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    with (
        serving(daemon, limits=Limits(connections=4), tls=lambda: server) as running,
        ExitStack() as stack,
    ):
        silent = [stack.enter_context(connected(running)) for _ in range(12)]
        with context.wrap_socket(connected(running), server_hostname="127.0.0.1") as client:
            client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            assert client.recv(1000).startswith(b"HTTP/1.1 200")
        assert ended(silent[0])
        assert len(running.connections) <= 4


def test_plain_http_to_a_tls_port_harms_nobody(daemon):
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(server)
    with serving(daemon, tls=lambda: server) as running:
        for _ in range(3):
            with connected(running) as client:
                client.sendall(b"GET / HTTP/1.1\r\n\r\n")
                assert ended(client)
        deadline = time.monotonic() + 30
        while len(running.connections) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(running.connections) == 0


def test_a_slow_history_delays_pages_and_no_scrape(running, daemon, monkeypatch):
    held = threading.Event()
    monkeypatch.setattr(daemon.store, "present", lambda: held.wait(30) and [])
    with connected(running) as client:
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert get(running, "/metrics").status == 200
        assert get(running, "/healthz").status == 200
        held.set()
        assert client.recv(100).startswith(b"HTTP/1.1 200")


def test_a_taken_port_is_said(running, daemon):
    other = Server(make_app(daemon.source), host="127.0.0.1", port=running.port)
    with pytest.raises(NotServingError, match=f"127.0.0.1:{running.port}"):
        other.start()


def test_a_stopped_server_frees_its_port(daemon: Daemon):
    with serving(daemon) as running, connected(running) as client:
        port = running.port
        client.sendall(b"GET / HT")
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", port))


def test_no_host_is_every_address_of_both_families(daemon):
    one = Server(make_app(daemon.source), host="", port=0)
    one.start()
    try:
        addresses = ["127.0.0.1", "::1"] if socket.has_dualstack_ipv6() else ["127.0.0.1"]
        for address in addresses:
            with closing(socket.create_connection((address, one.port), timeout=30)) as client:
                client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
                assert client.recv(100).startswith(b"HTTP/1.1 200")
    finally:
        one.stop()


def test_a_process_without_descriptors_accepts_again_when_it_has_some(daemon, monkeypatch):
    refused = threading.Event()

    def none_left(_listening: socket.socket) -> None:
        refused.set()
        raise OSError(errno.EMFILE, "too many open files")

    with serving(daemon) as running:
        with monkeypatch.context() as short:
            short.setattr(socket.socket, "accept", none_left)
            client = connected(running)
            assert refused.wait(30)
        with client:
            client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_the_end_leaves_no_socket_whatever_clients_are_at(daemon, tls):
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(server)
    before = sockets()
    for _ in range(10):
        with (
            serving(daemon, tls=lambda: server if tls else None) as running,
            ExitStack() as stack,
        ):
            for said in (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01"):
                stack.enter_context(connected(running)).sendall(said)
    assert sockets() - before == set()


def sockets() -> set[str]:
    """The sockets of this process, by inode."""
    found = set()
    for one in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # that of the listing itself
            found.add(str(one.readlink()))
    return {name for name in found if name.startswith("socket:")}
