"""Who is asked for what /proc does not tell, and how far the answers are believed."""

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stack import nodes

from capture_canary.stack import helpers, kubelet_child
from capture_canary.stack.command import Command
from capture_canary.stack.helpers import Helpers
from capture_canary.stack.processes import Finder


def field(number, value):
    """A field with a length, as protocol buffers write it."""
    data = value.encode() if isinstance(value, str) else value
    size = b""
    left = len(data)
    while left > 0x7F:
        size += bytes([left & 0x7F | 0x80])
        left >>= 7
    return bytes([number << 3 | 2]) + size + bytes([left]) + data


def pod(name, namespace, devices):
    """PodResources; `devices` is resource name to ids."""
    given_ = b"".join(
        field(
            2, field(1, resource) + b"".join(field(2, one) for one in ids) + field(3, b"\x08\x01")
        )
        for resource, ids in devices.items()
    )
    return field(1, field(1, name) + field(2, namespace) + field(3, field(1, "main") + given_))


RESPONSE = (
    pod("qwen-0", "llm", {"huawei.com/Ascend910": ["Ascend910-4", "Ascend910-5"], "cpu": ["npu-9"]})
    + pod("web", "x", {"nvidia.com/gpu": ["Ascend910-1"]})
    + pod("virtual", "x", {"huawei.com/Ascend910": ["Ascend910-2c-100-0_0"]})
    + pod("new", "y" * 200, {"huawei.com/npu": ["npu-7"]})
)


def test_pods_of_npus():
    found = kubelet_child.pods(RESPONSE)
    assert [(one.name, one.devices) for one in found] == [("qwen-0", [4, 5]), ("new", [7])]
    assert found[0].namespace == "llm"


@given(cut=st.integers(0, len(RESPONSE) - 1), junk=st.binary(max_size=40))
def test_any_bytes_give_pods_or_an_error(cut, junk):
    with suppress(ValueError):
        assert all(one.devices for one in kubelet_child.pods(RESPONSE[:cut] + junk))


@contextmanager
def kubelet(folder, answer):
    """A gRPC server that answers as the kubelet does."""
    handler = grpc.method_handlers_generic_handler(
        "v1.PodResourcesLister",
        {"List": grpc.unary_unary_rpc_method_handler(answer, bytes, bytes)},
    )
    with ThreadPoolExecutor(1) as pool:
        server = grpc.server(pool)
        server.add_generic_rpc_handlers((handler,))
        socket = folder / "kubelet.sock"
        server.add_insecure_port(f"unix:{socket}")
        server.start()
        yield socket
        server.stop(None).wait()


def look(folder, environ=None, **sockets):
    worker = {"pid": 9, "is": "worker", "in": "c1", "cgroup": "v2-containerd", "npus": [4]}
    about = {
        "containers": {"c1": {"cann": {"toolkit": "9.0.0"}}},
        "processes": [worker | {"environ": environ or {}}],
    }
    places = nodes.build(about, folder)
    return Helpers(**sockets).look(Finder(places.proc, inspect=True), nodes={}, soc="a3")


def test_the_kubelet_names_the_pod(tmp_path):
    with kubelet(tmp_path, lambda _request, _context: RESPONSE) as socket:
        found = look(tmp_path, kubelet=socket)
    (server,) = found.servers
    assert server.pod
    assert (server.pod.namespace, server.pod.name, server.pod.source) == (
        "llm",
        "qwen-0",
        "kubelet",
    )
    assert server.pod.uid == nodes.UID


def test_a_kubelet_that_talks_nonsense_is_named(tmp_path):
    with kubelet(tmp_path, lambda _request, _context: b"\x0a\xff") as socket:
        found = look(tmp_path, kubelet=socket)
    assert any("pods of NPUs: the kubelet at" in text for text in found.unseen)


def test_sockets_that_are_not_there_are_named(tmp_path):
    found = look(tmp_path, "denied", kubelet=tmp_path / "k.sock", docker=tmp_path / "d.sock")
    assert any("UNAVAILABLE" in text for text in found.unseen)
    assert any("the Docker Engine at" in text for text in found.unseen)
    assert found.servers[0].mode.source == "unknown"


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("print('{')", "makes no sense"),
        ("print('[]')", "makes no sense"),
        ("""print('{"pods": [{"name": 1}]}')""", "makes no sense"),
        ("print('x' * (2 << 20))", "bytes"),
        ("raise SystemExit('gone \\x1b[2J')", "gone ?[2J"),
    ],
)
def test_a_child_is_believed_as_far_as_its_form_goes(monkeypatch, code, wanted):
    class Child(Command):
        def __init__(self, _argv, **bounds):
            super().__init__([sys.executable, "-c", code], **bounds)

    monkeypatch.setattr(helpers, "Command", Child)
    answer = helpers._ask("any", [])  # noqa: SLF001  # the border itself
    assert wanted in (answer.error or "")
    assert not answer.pods
