"""What the Kubernetes API tells of this node's pods, over TLS as in a pod; and what is not taken from it."""

import json
import shutil
import socket
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stack import nodes

from capture_canary.stack import helpers, kubernetes_child
from capture_canary.stack.helpers import Answer, Helpers
from capture_canary.stack.kubernetes_child import PodList, containers
from capture_canary.stack.processes import Finder

ID = nodes.container_id("c1")


def pod(*env, env_from=(), number=ID):
    return {
        "metadata": {"name": "qwen-0", "namespace": "llm", "labels": {"x": "y"}},
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "main", "env": list(env), "envFrom": list(env_from)}],
        },
        "status": {
            "containerStatuses": [{"name": "main", "containerID": f"containerd://{number}"}]
        },
    }


MODE = {"name": "HCCL_OP_EXPANSION_MODE", "value": "AIV"}
TOKEN = {"name": "HF_TOKEN", "value": "hf_secret"}
FROM = {"name": "HCCL_OP_EXPANSION_MODE", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}


def read(*pods):
    return containers(msgspec.json.decode(json.dumps({"items": pods}), type=PodList))


@pytest.mark.parametrize(
    ("pods", "variables"),
    [
        (pod(MODE, TOKEN), {"HCCL_OP_EXPANSION_MODE": "AIV"}),
        (pod(TOKEN), {}),
        (pod(FROM), {}),
        (pod(TOKEN, env_from=[{"configMapRef": {"name": "c"}}]), {}),
    ],
)
def test_variables_that_the_spec_spells_out(pods, variables):
    found = read(pods)[ID]
    assert (found.name, found.namespace) == ("qwen-0", "llm")
    assert found.variables == variables
    assert "hf_secret" not in repr(found)


def test_a_container_that_has_not_started_is_none():
    assert read(pod(MODE, number="")) == {}
    assert read() == {}


@given(data=st.binary(max_size=300))
def test_any_answer_is_read_or_refused(data):
    try:
        found = containers(msgspec.json.decode(data, type=PodList))
    except msgspec.DecodeError:
        found = {}
    assert found == {}


@pytest.fixture
def account(tmp_path):
    """A service account's folder, and the address of an API server that knows its token."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is missing")
    folder = tmp_path / "account"
    folder.mkdir()
    (folder / "token").write_text("the-token\n")
    key, certificate = tmp_path / "key.pem", folder / "ca.crt"
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2",
         "-subj", "/CN=api", "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    asked = []

    class Api(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            if "elsewhere" in self.path:
                self.send_response(302)
                port = self.path.partition("elsewhere-")[2].partition("&")[0]
                self.send_header("Location", f"http://127.0.0.1:{port}/")
                self.end_headers()
                return
            good = self.headers["Authorization"] == "Bearer the-token"
            self.send_response(200 if good else 403)
            self.end_headers()
            self.wfile.write(json.dumps({"items": [pod(MODE, TOKEN)]}).encode() if good else b"{}")

        def log_message(self, format, *args):  # noqa: A002  # the base's name
            """Silent."""

    server = HTTPServer(("127.0.0.1", 0), Api)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    environ = {
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(server.server_port),
    }
    yield folder, environ, asked
    server.shutdown()
    thread.join()
    server.server_close()


def test_asks_for_this_nodes_pods(account):
    folder, environ, asked = account
    answer = kubernetes_child._answer("n1", environ, folder)  # noqa: SLF001  # main without its folder
    assert answer.error is None
    assert answer.containers[ID].variables == {"HCCL_OP_EXPANSION_MODE": "AIV"}
    assert asked == ["/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&resourceVersion=0"]


def test_says_why_it_could_not(account, tmp_path):
    folder, environ, _ = account

    def error(node="n1", environ_=environ, account_=folder):
        return kubernetes_child._answer(node, environ_, account_).error or ""  # noqa: SLF001  # the same

    assert "no pod" in error(environ_={})
    assert "NODE_NAME" in error(node="")
    assert "FileNotFoundError" in error(account_=tmp_path / "none")
    (folder / "token").write_text("another")
    assert "403" in error()


def test_a_spec_that_says_nothing_leaves_the_mode_unknown(tmp_path, monkeypatch):
    """The image may set it."""
    told = Answer(containers=read(pod(TOKEN)))
    monkeypatch.setattr(helpers, "_ask", lambda *_args: told)
    worker = {"pid": 9, "is": "worker", "in": "c1", "cgroup": "v2-containerd", "environ": "wiped"}
    places = nodes.build({"containers": {"c1": {}}, "processes": [worker]}, tmp_path)
    found = Helpers(node="n1").look(Finder(places.proc, inspect=True), nodes={}, soc="a3")
    assert [one.mode.source for one in found.servers] == ["unknown"]


def test_pod_and_mode_come_into_the_servers(tmp_path, monkeypatch):
    told = Answer(containers=read(pod(MODE)))
    monkeypatch.setattr(
        helpers, "_ask", lambda module, _args: told if module == "kubernetes_child" else Answer()
    )
    about = {
        "containers": {"c1": {"cann": {"toolkit": "9.0.0"}}},
        "processes": [
            {"pid": 9, "is": "worker", "in": "c1", "cgroup": "v2-containerd", "environ": "wiped"}
        ],
    }
    places = nodes.build(about, tmp_path)
    found = Helpers(node="n1").look(Finder(places.proc, inspect=True), nodes={}, soc="a3")
    (server,) = found.servers
    assert server.pod
    assert (server.pod.name, server.pod.source) == ("qwen-0", "Kubernetes API")
    assert (server.mode.in_force, server.mode.source) == ("AIV", "pod")


def test_the_token_goes_nowhere_else(account):
    """A redirect, to plain HTTP even, is an error: the token is for the API server alone."""
    folder, environ, asked = account
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.settimeout(0.0)
        node = f"elsewhere-{other.getsockname()[1]}"
        found = kubernetes_child._answer(node, environ, folder)  # noqa: SLF001  # the same
        with pytest.raises(BlockingIOError):
            other.accept()
    assert (len(asked), found.error) == (1, "the Kubernetes API: 302 (needs `list` on pods)")


@pytest.mark.parametrize("token", ["s3cr3t\nx", "s3cr3t\r\nX: y", "s3cr3t\0", "s3cr3té"])
def test_a_token_that_fits_no_header_is_not_repeated(account, token):
    folder, environ, _ = account
    (folder / "token").write_bytes(token.encode())
    found = kubernetes_child._answer("n1", environ, folder)  # noqa: SLF001  # the same
    assert found.error is not None
    assert "s3cr3t" not in found.error
