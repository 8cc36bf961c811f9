"""`/proc`: command lines, environments, cgroups, and whole folders of processes, which their owners choose."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from capture_canary.stack import environ, serving
from capture_canary.stack.cgroups import container_of
from capture_canary.stack.environ import ALLOWED, MAX_VALUE
from capture_canary.stack.processes import Finder
from capture_canary.stack.servers import outlook
from tests.fuzz.target import Target, put, scratch
from tests.stack import nodes

FILES = ("cmdline", "environ", "stat", "status", "cgroup", "maps")
SPLIT = b"\n%%\n"
"""Between the files of one input."""
STAT = b"7 (python3) S 1 7 7 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 5000 0 0"
STATUS = b"Name:\tpython3\nNSpid:\t7\t1\n"
CGROUP = nodes.CGROUPS["v2-containerd"].format(uid_=nodes.UID.replace("-", "_"), c="ab" * 32)
MAPS = b"7f0 r-xp 0 fd:01 9 /usr/local/Ascend/cann-8.5.0/aarch64-linux/lib64/libhcomm.so\n"
LINES = [b"\0".join(word.encode() for word in argv) + b"\0" for argv in nodes.KINDS.values()]
SECRET = b"hunter2-never-to-be-kept"


def cmdline(data: bytes) -> None:
    argv = serving.arguments(data)
    assert len(argv) <= serving.MAX_ARGUMENTS
    found = serving.serves(argv)
    assert found is None or (found.role.isprintable() and len(found.role) <= 128)
    serving.communicators_likely(argv)
    serving.names_model(argv, "MiniMax-M2")


def environment(data: bytes) -> None:
    secret = b"HF_TOKEN=" + SECRET + b"\0"
    found = environ.parse(secret + data)
    assert set(found.values) <= ALLOWED
    assert all(text.isprintable() and len(text) <= MAX_VALUE for text in found.values.values())
    assert SECRET.decode() not in repr(found)
    cut = environ.parse(data, whole=False)
    assert not cut.complete
    assert cut.values.keys() <= environ.parse(data).values.keys()


def cgroup(data: bytes) -> None:
    found = container_of(data.decode(errors="replace"))
    if found is not None:
        assert len(found.id) == 64
        assert set(found.id) <= set("0123456789abcdef")
        assert found.pod_uid is None or len(found.pod_uid) in {32, 36}


def _folder(pid: str) -> Path:
    folder = scratch("proc") / pid
    if not folder.exists():
        (folder / "fd").mkdir(parents=True)
        (folder / "root" / "etc").mkdir(parents=True)
        (folder / "exe").symlink_to("/opt/venv/bin/python3")
    return folder


def process(data: bytes) -> None:
    folder = _folder("7")
    for name, content in zip(FILES, [*data.split(SPLIT), *[b""] * len(FILES)], strict=False):
        put(folder / name, content)
    finder = Finder(folder.parent, inspect=True, seconds=30)
    seen = finder.look(nodes={}, soc="a3")
    for server in seen.servers:
        known, why = outlook(server)
        assert known == "unknown" or server.exposed is not None
        text = msgspec.json.encode([server, why]).decode()
        assert len(text) < 1 << 16
        shown = (server.role, *server.unseen, why, server.mode.in_force or "", *server.mode.doubts)
        assert all(one.isprintable() for one in shown)


def processes() -> Iterable[bytes]:
    for line in LINES:
        yield SPLIT.join(
            [line, b"HCCL_OP_EXPANSION_MODE=AIV\0A=1\0", STAT, STATUS, CGROUP.encode(), MAPS]
        )
    yield SPLIT.join([LINES[0], b"\0\0", STAT.replace(b"5000", b"x"), b"", b"0::/\n", b""])


TARGETS = (
    Target(
        "cmdline", "/proc/PID/cmdline", cmdline, lambda: LINES, longest=2048,
        tokens=(b"VLLM::", b"sglang::", b"ray::", b"RayWorker", b"-m\0", b"vllm\0serve\0", b"--dp=", b"-dp\0", b"2"),
    ),
    Target(
        "environ", "/proc/PID/environ", environment, longest=2048,
        seeds=lambda: [b"HCCL_OP_EXPANSION_MODE=AIV\0PATH=/bin\0", b"\0" * 64, b"LD_PRELOAD=/x/libcapturetrace.so\0=\0"],
        tokens=tuple(f"{name}=".encode() for name in sorted(ALLOWED)),
    ),
    Target(
        "cgroup", "/proc/PID/cgroup", cgroup, longest=1024,
        seeds=lambda: [
            text.replace("{uid_}", nodes.UID.replace("-", "_")).replace("{uid}", nodes.UID)
            .replace("{c}", "ab" * 32).replace("{kind}", "cd" * 32).encode()
            for text in nodes.CGROUPS.values()
        ],
        tokens=(b"0::/", b"cri-containerd-", b".scope", b"pod", b"docker", b"crio-", b"libpod-", b"ab" * 32),
    ),
    Target(
        "process", "all files of a process together", process, processes, mutants=60, longest=2048,
        tokens=(SPLIT, b"HCCL_DETERMINISTIC=true\0", b"LD_PRELOAD=libcapturetrace.so\0", b"MiniMax-M2", b"NSpid:\t7\t"),
    ),
)  # fmt: skip
