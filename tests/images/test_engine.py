"""The Docker Engine's failures in clear words: an old one, a silent one, one without disk, one that is not ours."""

import contextlib
import http.server
import json
import socketserver
import threading
import time

import pytest

from capture_canary.images import engine
from capture_canary.images.build_child import build
from capture_canary.images.job import Job


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


@contextlib.contextmanager
def speaking(path, answer):
    """An Engine that answers each request with what `answer` returns for its path: a status and an object."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def address_string(self):
            return "unix"

        def log_message(self, format, *args):  # noqa: A002  # the name that the library has
            pass

        def do_GET(self):
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, said = answer(self.path)
            body = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(BrokenPipeError):
                self.wfile.write(body)

        do_POST = do_GET  # noqa: N815  # the library's name

    server = _Server(str(path), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def socket(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/d")
    return tmp_path / "d"


def test_an_old_engine_is_told(socket):
    with speaking(socket, lambda _: (200, {"ApiVersion": "1.40", "Version": "19.03.15"})), pytest.raises(
        engine.EngineError, match=r"too old: 20\.10 or newer is needed, this is 19\.03\.15"
    ):  # fmt: skip
        engine.connect()


def test_a_newer_engine_is_spoken_to_in_its_own_version(socket):
    asked = []

    def answer(path):
        asked.append(path)
        return 200, {"ApiVersion": "1.52", "Version": "29.0.0"}

    with speaking(socket, answer):
        client = engine.connect()
        client.version()
        client.close()
    assert asked[0] == "/version"
    assert asked[-1] == "/v1.52/version"


def test_a_silent_engine_is_told(socket):
    def answer(_):
        time.sleep(1)
        return 200, {}

    with speaking(socket, answer), pytest.raises(engine.EngineError, match="did not answer in time"):  # fmt: skip
        engine.connect(timeout=0.2)


def test_something_else_on_the_socket_is_told(socket):
    with speaking(socket, lambda _: (404, {"message": "no such page"})), pytest.raises(
        engine.EngineError, match="no such page"
    ):  # fmt: skip
        engine.connect()


def test_a_socket_that_may_not_be_used_is_told():
    error = PermissionError(13, "Permission denied")
    assert "be in the group docker, or root" in engine.explain(error)


def test_an_engine_out_of_disk_is_told(socket, tmp_path):
    def answer(path):
        name = path.partition("?")[0].partition("/v1.41")[2] or path
        if name == "/version":
            return 200, {"ApiVersion": "1.41", "Version": "20.10.24"}
        if name == "/images/json":
            return 200, [{"Id": "sha256:1"}] if "base" in path else []
        if name.startswith("/images/"):
            return 200, {"Id": "sha256:1", "RepoDigests": [], "Config": {}}
        return 200, {"error": "write /var/lib/docker/tmp/x: no space left on device"}

    context = tmp_path / "context.tar"
    context.write_bytes(b"")
    job = Job(
        name="one", tag="one:1", bases=("base:1",), pull=False, context=str(context), context_digest="x", dockerfile="f"
    )  # fmt: skip
    with speaking(socket, answer):
        client = engine.connect()
        with pytest.raises(engine.EngineError, match="is out of disk: see `docker system df`"):
            list(build(client, job))
        client.close()
