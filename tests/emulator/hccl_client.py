"""A client of CANN through ctypes for tests of the emulated HCCL: ranks as threads or as processes."""

import ctypes
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from ctypes import POINTER, byref, c_char, c_int, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

from capture_canary.native import emulated_cann_dir

ROOT = Path(__file__).parents[2]  # of the repository: the scenarios run as a module of it
ROOT_INFO_BYTES = 4108
SUCCESS, E_PARA, E_NOT_SUPPORT, E_UNAVAIL, E_TIMEOUT, E_REMOTE = 0, 1, 5, 7, 9, 21
AICPU_EXCEPTION = 507018
SUM, PROD, MAX, MIN = range(4)
INT8, INT16, INT32, FP16, FP32, INT64 = range(6)
BF16 = 11


class Settings(ctypes.Structure):
    """emuSettings of emu.h."""

    _fields_ = (
        ("cann", c_char * 32),
        ("hcomm", c_char * 32),
        ("growth", c_int),
        ("soc", c_int),
        ("npus", c_int),
        ("hbm", c_uint64),
        ("peers", c_int),
        ("scratch", c_int),
        ("roce", c_int),
    )


class CommConfig(ctypes.Structure):
    """HcclCommConfig as torch-npu 2.13 knows it, version 10."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("magic", c_uint32),
        ("version", c_uint32),
        ("reserved", c_uint64),
        ("buffer_size", c_uint32),
        ("deterministic", c_uint32),
        ("name", c_char * 128),
        ("udi", c_char * 128),
        ("expansion_mode", c_uint32),
        ("traffic_class", c_uint32),
        ("service_level", c_uint32),
        ("world_rank", c_uint32),
        ("job", c_uint64),
        ("zero_copy", ctypes.c_uint8),
        ("exec_timeout", ctypes.c_int32),
        ("algo", c_char * 1600),
        ("retry_enable", c_char * 50),
        ("retry_params", c_char * 128),
        ("buffer_name", c_char * 128),
        ("qos", c_uint32),
    )


def comm_config(version: int = 10, **fields: Any) -> CommConfig:
    """What HcclCommConfigInit makes, with some fields set."""
    unset = 0xFFFFFFFF
    config = CommConfig(
        size=ctypes.sizeof(CommConfig),
        magic=0xF0F0F0F0,
        version=version,
        buffer_size=unset,
        deterministic=unset,
        traffic_class=unset,
        service_level=unset,
        exec_timeout=-1,
        qos=unset,
    )
    for name, value in fields.items():
        setattr(config, name, value.encode() if isinstance(value, str) else value)
    return config


class CannError(Exception):
    def __init__(self, function: str, code: int) -> None:
        super().__init__(f"{function}: {code}")
        self.function = function
        self.code = code


class Cann:
    """The libraries of one process; `call` raises where a function returns other than 0."""

    def __init__(self) -> None:
        folder = emulated_cann_dir() / "lib64"
        self.acl = ctypes.CDLL(str(folder / "libascendcl.so"))
        self.hccl = ctypes.CDLL(str(folder / "libhccl.so"))
        self.acl.aclGetRecentErrMsg.restype = ctypes.c_char_p
        self.hccl.emuSettingsGet.restype = POINTER(Settings)
        self.call("aclInit", None)

    def call(self, function: str, *arguments: Any) -> None:
        library = self.hccl if function.startswith("Hccl") else self.acl
        code = getattr(library, function)(*arguments)
        if code != 0:
            raise CannError(function, code)

    def message(self) -> str:
        return (self.acl.aclGetRecentErrMsg() or b"").decode()

    def settings(self) -> Settings:
        """The settings in force; a test may write to them."""
        settings: Settings = self.hccl.emuSettingsGet()[0]
        return settings


class Rank:
    """One rank: a device, a stream and a communicator. `meet` hands the root info from rank 0 to the others."""

    def __init__(self, cann: Cann, rank: int, ranks: int, device: int | None = None) -> None:
        self.cann = cann
        self.rank = rank
        self.ranks = ranks
        cann.call("aclrtSetDevice", rank if device is None else device)
        self.stream = c_void_p()
        cann.call("aclrtCreateStream", byref(self.stream))
        self.comm = c_void_p()

    def root(self) -> bytes:
        info = ctypes.create_string_buffer(ROOT_INFO_BYTES)
        self.cann.call("HcclGetRootInfo", info)
        return info.raw

    def join(self, root: bytes, config: CommConfig | None = None) -> None:
        info = ctypes.create_string_buffer(root, ROOT_INFO_BYTES)
        comm = c_void_p()
        if config is None:
            self.cann.call("HcclCommInitRootInfo", self.ranks, info, self.rank, byref(comm))
        else:
            self.cann.call(
                "HcclCommInitRootInfoConfig",
                self.ranks,
                info,
                self.rank,
                byref(config),
                byref(comm),
            )
        self.comm = comm

    def leave(self) -> None:
        self.cann.call("HcclCommDestroy", self.comm)

    def malloc(self, size: int) -> int:
        pointer = c_void_p()
        self.cann.call("aclrtMalloc", byref(pointer), ctypes.c_size_t(size), 0)
        assert pointer.value is not None
        return pointer.value

    def sync(self) -> None:
        self.cann.call("aclrtSynchronizeStream", self.stream)

    def all_reduce(
        self, send: int, recv: int, count: int, dtype: int = FP32, op: int = SUM
    ) -> None:
        self.cann.call(
            "HcclAllReduce",
            *(c_void_p(send), c_void_p(recv), c_uint64(count), dtype, op, self.comm, self.stream),
        )

    def all_gather(self, send: int, recv: int, count: int, dtype: int = FP32) -> None:
        self.cann.call(
            "HcclAllGather",
            *(c_void_p(send), c_void_p(recv), c_uint64(count), dtype, self.comm, self.stream),
        )

    def capture(self, work: Callable[[], None]) -> c_void_p:
        graph = c_void_p()
        self.cann.call("aclmdlRICaptureBegin", self.stream, 0)
        work()
        self.cann.call("aclmdlRICaptureEnd", self.stream, byref(graph))
        return graph

    def replay(self, graph: c_void_p) -> None:
        self.cann.call("aclmdlRIExecuteAsync", graph, self.stream)

    def free_hbm(self) -> int:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.cann.call("aclrtGetMemInfo", 1, byref(free), byref(total))
        return free.value


class Job:
    """What a rank is to do it with: options, a folder to meet in, root infos through it."""

    def __init__(self, folder: Path, rank: int, options: dict[str, Any]) -> None:
        self.folder = folder
        self.options = options
        self.rank = rank
        self._count = 0

    def root(self, rank: Rank) -> bytes:
        self._count += 1
        file = self.folder / f"root-{self._count}"
        if self.rank == 0:
            info = rank.root()
            part = file.with_suffix(".part")
            part.write_bytes(info)
            part.rename(file)
            return info
        deadline = time.monotonic() + 30
        while not file.exists():
            assert time.monotonic() < deadline, "rank 0 made no root info"
            time.sleep(0.002)
        return file.read_bytes()


COUNTED = ("Copies", "Bytes", "ToHost", "Frames", "Mallocs")
Scenario = Callable[[Rank, Job], Any]


def run_rank(scenario: Scenario, cann: Cann, ranks: int, job: Job) -> Any:
    """Run a scenario as one rank; where CANN refuses, the answer says what and why."""
    try:
        return scenario(Rank(cann, job.rank, ranks), job)
    except CannError as error:
        return {"function": error.function, "code": error.code, "message": cann.message()}


def main(*scenarios: Scenario) -> None:
    """Serve as the process of one rank, or of all ranks as threads. Prints the answers as JSON."""
    name, first, count, ranks, folder, options = sys.argv[1:]
    (scenario,) = (known for known in scenarios if known.__name__ == name)
    cann = Cann()
    answers: dict[int, Any] = {}

    def body(rank: int) -> None:
        answers[rank] = run_rank(
            scenario, cann, int(ranks), Job(Path(folder), rank, json.loads(options))
        )

    threads = [
        threading.Thread(target=body, args=(rank,))
        for rank in range(int(first), int(first) + int(count))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(answers) < int(count):
        sys.exit(1)  # a thread died of its exception and has told so
    say([answers[rank] for rank in sorted(answers)])


def say(answer: Any) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


class Group:
    """Processes that run one scenario: a function of a module that is their main module too."""

    def __init__(
        self,
        scenario: Scenario,
        ranks: int,
        folder: Path,
        *,
        threads: bool = False,
        start: int | None = None,
        options: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        firsts = [0] if threads else range(ranks if start is None else start)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("HCCL_")}
        self.processes = [
            subprocess.Popen(
                [
                    *(sys.executable, "-m", scenario.__module__, scenario.__name__, str(first)),
                    *(str(ranks if threads else 1), str(ranks), str(folder)),
                    json.dumps(options or {}),
                ],
                cwd=ROOT,
                env=clean | {"CAPTURE_CANARY_EMULATE_NODE": str(folder / "node")} | dict(env or {}),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for first in firsts
        ]

    def answers(self, seconds: float = 60) -> list[Any]:
        """What each rank answered. Kills all processes where one is late."""
        answers: list[Any] = []
        try:
            for process in self.processes:
                out, err = process.communicate(timeout=seconds)
                assert process.returncode == 0, (
                    f"a rank ended with {process.returncode}: {err[-4000:]}"
                )
                answers.extend(json.loads(out.splitlines()[-1]))
        finally:
            self.kill()
        return answers

    def kill(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.communicate()


def build_counter(folder: Path) -> str:
    """Compile the library to preload, which counts a thread's copies."""
    library = folder / "libcopies.so"
    source = Path(__file__).with_name("copies.c")
    command = ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return str(library)


class GrowthServer:
    """One process of two ranks that makes growth runs under any settings."""

    def __init__(self, group: Group) -> None:
        self._process = group.processes[0]

    def run(self, settings: dict[str, Any], **options: Any) -> list[dict[str, int]]:
        """What was counted in the eager operations and in each capture."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"settings": settings, **options}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the growth server died: {self._process.communicate()[1][-4000:]}"
        return [dict(zip(COUNTED, counts, strict=True)) for counts in json.loads(line)]
