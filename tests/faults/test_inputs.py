"""What other containers, logs and the network write or keep back: bounded, and never a reason to miss what is good."""

import os
import resource
import shutil
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from capture_canary.export.state import State
from capture_canary.service.board import Board, View
from capture_canary.service.logs import LogWatch
from capture_canary.stack import helpers
from capture_canary.stack.helpers import Helpers
from capture_canary.stack.processes import Finder
from capture_canary.stack.servers import Servers
from capture_canary.trace.folder import MAX_FILES
from capture_canary.trace.identity import own_identity
from tests.faults.node import injects
from tests.service.traced import Node, name
from tests.stack import nodes
from tests.trace.writing import LAYOUT, header, record

DATA = Path(__file__).parent.parent / "data"
SECRET = b"a secret of the host's"
NOBODY = 65534


def torn(path: Path) -> None:
    path.write_bytes(header(own_identity())[:100])


def forged(path: Path) -> None:
    path.write_bytes(header(own_identity())[:12] + os.urandom(100_000))


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.write(header(own_identity()) + record(1))
        file.truncate(64 << 30)


def symlink(path: Path) -> None:
    secret = path.parent / "secret"
    secret.write_bytes(SECRET)
    path.symlink_to(secret)


def anothers(path: Path) -> None:
    torn(path)
    path.chmod(0)
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)


FILES: dict[str, Callable[[Path], None]] = {
    "a torn trace file": torn,
    "a forged trace file": forged,
    "a huge trace file": huge,
    "a trace file that is a symlink": symlink,
    "a trace file that is a FIFO": os.mkfifo,
    "a trace file that is a folder": Path.mkdir,
    "a trace file of another user": anothers,
}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    made.trace("8.5.0", copies=25)
    yield made
    made.traces.close()
    made.store.close()


@injects(*FILES)
@pytest.mark.parametrize("write", FILES.values(), ids=FILES.keys())
def test_bad_trace_file(write: Callable[[Path], None], node: Node):
    bad = msgspec.structs.replace(own_identity(), start_time=2)
    write(node.folder / bad.file_name)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    node.look()

    assert node.exported("verdict") == {name("8.5.0"): ["degraded"]}
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 32 << 10  # KiB
    assert SECRET not in repr(node.board.view).encode()


@injects("1,000 trace files")
def test_flood_of_trace_files(node: Node, capsys: pytest.CaptureFixture[str]):
    node.look()
    for number in range(2, 1002):
        process = msgspec.structs.replace(own_identity(), start_time=number)
        (node.folder / process.file_name).write_bytes(header(process)[:64])
    descriptors = len([*Path("/proc/self/fd").iterdir()])

    node.look()

    assert node.exported("verdict") == {name("8.5.0"): ["degraded"]}
    assert "traces_left_out" in capsys.readouterr().out
    assert len([*Path("/proc/self/fd").iterdir()]) - descriptors <= MAX_FILES


@injects("a trace file truncated while it is followed")
def test_trace_truncated_while_followed(node: Node):
    other = node.trace("9.0.0", copies=25, number=2)
    node.look()
    os.truncate(other, 0)
    for _ in range(3):
        node.look()
    assert node.exported("verdict")[name("8.5.0")] == ["degraded"]
    with other.open("r+b") as file:  # and garbage where records were
        file.truncate(LAYOUT.header_bytes + 10 * LAYOUT.record.size)
        file.seek(LAYOUT.header_bytes)
        file.write(struct.pack("<I", 7) * 100)
    node.look()
    assert node.exported("verdict")[name("8.5.0")] == ["degraded"]


class Followed:
    """A log that is followed."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "vllm.log"
        text = (DATA / "vllm-logs" / "degrading-synthetic.log").read_text()
        lines = text.splitlines(keepends=True)
        half = len(lines) // 2
        self.first, self.rest = "".join(lines[:half]), "".join(lines[half:])
        self.path.write_text(self.first)
        self.board = Board(View(state=State(version="0", emulated=False, stack={})))
        self.watch = LogWatch((str(self.path),), self.board)
        self.look()

    def look(self) -> None:
        self.watch._next = 0.0  # noqa: SLF001  # not in five seconds, but now
        self.watch.poll()

    @property
    def suspect(self) -> bool:
        return [one.cause for one in self.board.view.logs.values()] == ["suspect"]

    def append(self) -> None:
        with self.path.open("a") as file:
            file.write(self.rest)
        self.look()


@injects("a followed log is rotated")
def test_log_rotated(tmp_path: Path):
    log = Followed(tmp_path)
    log.path.rename(tmp_path / "vllm.log.1")
    log.append()
    assert log.suspect


@injects("a followed log is truncated")
def test_log_truncated(tmp_path: Path):
    log = Followed(tmp_path)
    shutil.copy(log.path, tmp_path / "vllm.log.1")
    os.truncate(log.path, 0)
    log.append()
    assert log.suspect


@injects("a followed log is replaced by a FIFO")
def test_log_replaced_by_a_fifo(tmp_path: Path):
    log = Followed(tmp_path)
    log.path.unlink()
    os.mkfifo(log.path)
    log.look()
    log.path.unlink()
    log.path.write_text(log.first)
    log.append()
    assert log.suspect


def look(folder: Path, **whom: object) -> Servers:
    """Look for servers of a node whose environments are not to be read."""
    worker = {
        "pid": 9,
        "is": "worker",
        "in": "c1",
        "cgroup": "v2-docker",
        "npus": [4],
        "environ": "denied",
    }
    about = {"containers": {"c1": {"cann": {"toolkit": "9.0.0"}}}, "processes": [worker]}
    finder = Finder(nodes.build(about, folder).proc, inspect=True)
    return Helpers(**whom).look(finder, nodes={}, soc="a3")  # type: ignore[arg-type]  # as settings give them


@injects("the Kubernetes API is down")
def test_kubernetes_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(silent.getsockname()[1]))
        found = look(tmp_path, node="node-7")
    assert [server.npus for server in found.servers] == [(4,)]
    assert any(text.startswith("pods: the Kubernetes API") for text in found.unseen)


@injects("the Docker Engine hangs")
def test_docker_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(helpers, "DEADLINE", 3.0)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "docker.sock"))
        silent.listen()
        found = look(tmp_path, docker=tmp_path / "docker.sock")
    assert [server.npus for server in found.servers] == [(4,)]
    assert found.servers[0].mode.source == "unknown"
    assert any(text.startswith("variables of containers: ") for text in found.unseen)
