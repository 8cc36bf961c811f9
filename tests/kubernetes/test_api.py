"""The client against servers that refuse, fail, are slow or talk nonsense: each is one of our errors, in time."""

import json
import os
import threading
import traceback
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lightkube")

from capture_canary.kubernetes import api
from capture_canary.kubernetes.api import Api, ApiError, DeniedError, ExistsError, Job

JSON = "application/json"


class Server(ThreadingHTTPServer):
    """Gives one answer to everything."""

    answer: tuple[int, str, str] | None = None
    """Code, type and body; None: it never answers."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = 0
        self.goes_to: str | None = None
        """Where its answers send the client."""
        self.released = threading.Event()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        if server.answer is None:
            server.released.wait(60)
            return
        code, kind, body = server.answer
        server.asked += 1
        self.send_response(code)
        if server.goes_to:
            self.send_header("Location", server.goes_to)
        if kind:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815  # the base class asks for these names

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class calls it so
        pass


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    found = Server()
    thread = threading.Thread(target=found.serve_forever)
    thread.start()
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{found.server_port}"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
    }  # fmt: skip
    (tmp_path / "config").write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    yield found
    found.released.set()
    found.shutdown()
    found.server_close()
    thread.join()


def status(code: int) -> str:
    return json.dumps({"kind": "Status", "apiVersion": "v1", "message": "because", "code": code})


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ((403, JSON, status(403)), DeniedError),
        ((401, JSON, status(401)), DeniedError),
        ((409, JSON, status(409)), ExistsError),
        ((500, JSON, status(500)), ApiError),
        ((429, JSON, status(429)), ApiError),
        ((503, "text/plain", "away"), ApiError),
        ((503, "", ""), ApiError),
        ((200, JSON, "{"), ApiError),
        ((200, "text/html", "<html>a proxy's login</html>"), ApiError),
    ],
)
def test_each_answer_is_one_of_our_errors(
    server: Server, answer: tuple[int, str, str], kind: type[ApiError]
):
    server.answer = answer
    with pytest.raises(ApiError) as raised:
        Api().create(Job, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}, "n")
    assert kind is type(raised.value)


@pytest.mark.usefixtures("server")
def test_a_server_that_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(api, "CALL_SECONDS", 0.3)
    with pytest.raises(ApiError, match="Timeout"):
        Api().found(Job, {"a": "b"})


def test_what_is_gone_is_deleted(server: Server):
    server.answer = (404, JSON, status(404))
    Api().delete_job("j")


def test_outside_of_a_cluster_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(ApiError, match="no way to the Kubernetes API"):
        Api()


SECRET = "s3cr3t-t0ken"  # noqa: S105  # planted


@pytest.mark.parametrize(
    "text",
    [
        f"users: [{{name: u, user: {{token: {SECRET}",
        f"token: a: {SECRET}",
        f"- {SECRET}",
        f"clusters: {SECRET}",
        f"users: {{{SECRET}: 1}}",
        f"\x00{SECRET}",
        f"&a [*{SECRET}]",
        SECRET,
    ],
)
def test_a_broken_kubeconfig_is_an_error_that_quotes_nothing_of_it(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "config").write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    with pytest.raises(ApiError) as raised:
        Api()
    assert SECRET not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize("token", [f"{SECRET}\nx", f"{SECRET}\r\nX: y", f"{SECRET}\0"])
def test_a_token_that_fits_no_header_is_not_repeated(server: Server, token: str):
    path = Path(os.environ["KUBECONFIG"])
    config = json.loads(path.read_text())
    config["users"][0]["user"]["token"] = token
    path.write_text(json.dumps(config))
    server.answer = (200, JSON, "{}")
    with pytest.raises(ApiError) as raised:
        Api().conditions("n")
    assert SECRET not in "".join(traceback.format_exception(raised.value))


def test_the_token_goes_nowhere_else(server: Server):
    other = Server()
    other.answer = (200, JSON, "{}")
    thread = threading.Thread(target=other.serve_forever)
    thread.start()
    server.goes_to = f"http://127.0.0.1:{other.server_port}/"
    try:
        for code in (301, 302, 303, 307, 308):
            server.answer = (code, JSON, "{}")
            with pytest.raises(ApiError, match=str(code)):
                Api().conditions("n")
        assert other.asked == 0
    finally:
        other.shutdown()
        other.server_close()
        thread.join()
