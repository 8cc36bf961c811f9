"""What ranks do in the tests of what goes wrong. Run as a module, it is the process of one rank or of several."""

import ctypes
import os
import signal
import time
from ctypes import byref, c_int32, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

from tests.emulator.hccl_client import FP32, PROD, SUM, Job, Rank, comm_config, main


def leave_early(rank: Rank, job: Job) -> Any:
    """Rank 0 waits in a collective for a rank that dies (`how`: kill), leaves, or never joins the collective."""
    rank.join(job.root(rank))
    buffer = rank.malloc(1 << 20)
    rank.all_reduce(buffer, buffer, 4)
    rank.sync()
    if rank.rank != 0:
        if job.options["how"] == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if job.options["how"] == "leave":
            rank.leave()
            return None
        (job.folder / f"idle-{rank.rank}").touch()
        while not (job.folder / "done").exists():
            time.sleep(0.01)
        return None
    rank.all_reduce(buffer, buffer, 1 << 18)
    begin = time.monotonic()
    code = rank.cann.acl.aclrtSynchronizeStream(rank.stream)
    seconds = time.monotonic() - begin
    error = c_int32()
    rank.cann.call("HcclGetCommAsyncError", rank.comm, byref(error))
    (job.folder / "done").touch()
    again = rank.cann.hccl.HcclAllReduce(
        *(c_void_p(buffer), c_void_p(buffer), c_uint64(1), FP32, SUM, rank.comm, rank.stream)
    )
    rank.leave()
    return {"code": code, "async": error.value, "again": again, "seconds": seconds}


def join_only(rank: Rank, job: Job) -> Any:
    config = job.options.get("config")
    rank.join(job.root(rank), comm_config(**config) if config is not None else None)
    name = ctypes.create_string_buffer(128)
    ranks, number = c_uint32(), c_uint32()
    rank.cann.call("HcclGetCommName", rank.comm, name)
    rank.cann.call("HcclGetRankSize", rank.comm, byref(ranks))
    rank.cann.call("HcclGetRankId", rank.comm, byref(number))
    rank.leave()
    return {"ranks": ranks.value, "rank": number.value, "name": name.value.decode()}


def hbm(rank: Rank, job: Job) -> Any:
    """HBM that a communicator takes: after joining, after its first collective, after its end."""
    buffer = rank.malloc(4096)
    before = rank.free_hbm()
    config = job.options.get("config")
    rank.join(job.root(rank), comm_config(**config) if config is not None else None)
    joined = before - rank.free_hbm()
    rank.all_reduce(buffer, buffer, 4)
    rank.sync()
    used = before - rank.free_hbm()
    rss = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    rank.leave()
    return {"joined": joined, "used": used, "left": before - rank.free_hbm(), "rss": rss}


def mismatch(rank: Rank, job: Job) -> Any:
    """The ranks call different collectives."""
    rank.join(job.root(rank))
    buffer = rank.malloc(4096)
    if rank.rank == 0:
        rank.all_reduce(buffer, buffer + 1024, 8)
    else:
        rank.all_gather(buffer, buffer + 1024, 8)
    code = rank.cann.acl.aclrtSynchronizeStream(rank.stream)
    (job.folder / f"done-{rank.rank}").touch()
    while not all((job.folder / f"done-{r}").exists() for r in range(rank.ranks)):
        time.sleep(0.005)
    rank.leave()
    return code


def only_aiv(rank: Rank, job: Job) -> None:
    """A collective that AIV cannot run, where nothing else is allowed."""
    rank.join(job.root(rank), comm_config(expansion_mode=4))
    buffer = rank.malloc(64)
    rank.all_reduce(buffer, buffer, 4)
    rank.sync()
    rank.all_reduce(buffer, buffer, 4, op=PROD)


def destroyed_replay(rank: Rank, job: Job) -> Any:
    """A graph replayed after its communicator was destroyed."""
    rank.join(job.root(rank))
    buffer = rank.malloc(64)
    graph = rank.capture(lambda: rank.all_reduce(buffer, buffer, 4))
    rank.leave()
    rank.replay(graph)
    code = rank.cann.acl.aclrtSynchronizeStream(rank.stream)
    rank.cann.call("aclmdlRIDestroy", graph)
    return code


def refused(rank: Rank, job: Job) -> Any:
    """Bad arguments, each with the code it must end in."""
    rank.join(job.root(rank))
    buffer = c_void_p(rank.malloc(64))
    one, stream, comm = c_uint64(1), rank.stream, rank.comm
    hccl = rank.cann.hccl
    answers = {
        "no buffer": hccl.HcclAllReduce(None, buffer, one, FP32, SUM, comm, stream),
        "no communicator": hccl.HcclAllReduce(buffer, buffer, one, FP32, SUM, None, stream),
        "data type": hccl.HcclAllReduce(buffer, buffer, one, 99, SUM, comm, stream),
        "reduction": hccl.HcclAllReduce(buffer, buffer, one, FP32, 9, comm, stream),
        "reduced type": hccl.HcclAllReduce(buffer, buffer, one, 10, SUM, comm, stream),
        "root": hccl.HcclBroadcast(buffer, one, FP32, c_uint32(rank.ranks), comm, stream),
        "peer": hccl.HcclSend(buffer, one, FP32, c_uint32(rank.rank), comm, stream),
        "count": hccl.HcclAllReduce(buffer, buffer, c_uint64(1 << 63), FP32, SUM, comm, stream),
        "rank table": hccl.HcclCommInitClusterInfo(b"/table.json", c_uint32(0), byref(c_void_p())),
        "root info": hccl.HcclCommInitRootInfo(
            c_uint32(2), ctypes.create_string_buffer(4108), c_uint32(0), byref(c_void_p())
        ),
    }
    rank.leave()
    answers["destroyed twice"] = hccl.HcclCommDestroy(comm)
    return answers


if __name__ == "__main__":
    main(leave_early, join_only, hbm, mismatch, only_aiv, destroyed_replay, refused)
