"""What ranks do in the tests of HCCL's data. Run as a module, it is the process of one rank or of several."""

import ctypes
import itertools
from collections.abc import Callable
from ctypes import c_uint32, c_uint64, c_void_p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.emulator.hccl_client import (
    BF16,
    FP16,
    FP32,
    INT8,
    INT16,
    INT32,
    INT64,
    MAX,
    MIN,
    PROD,
    SUM,
    Job,
    Rank,
    comm_config,
    main,
)

Array = NDArray[Any]
DTYPES: dict[int, Any] = {
    INT8: np.int8,
    INT16: np.int16,
    INT32: np.int32,
    INT64: np.int64,
    FP16: np.float16,
    FP32: np.float32,
    BF16: np.uint16,
}
REDUCERS = {SUM: np.add, PROD: np.multiply, MAX: np.maximum, MIN: np.minimum}


def to_bf16(values: Array) -> Array:
    """Round float32 to the nearest bfloat16, ties to even."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bf16(values: Array) -> Array:
    return (values.astype(np.uint32) << 16).view(np.float32)


def encode(values: Array, dtype: int) -> Array:
    return to_bf16(values) if dtype == BF16 else values.astype(DTYPES[dtype])


class Buffer:
    """Device memory as a numpy array, which the emulated device lets us have."""

    def __init__(self, rank: Rank, count: int, dtype: int) -> None:
        self.array: Array = np.empty(0)
        kind = np.dtype(DTYPES[dtype])
        size = max(1, count * kind.itemsize)
        self.pointer = rank.malloc(size)
        raw = (ctypes.c_char * size).from_address(self.pointer)
        self.array = np.frombuffer(memoryview(raw), kind, count)

    def at(self, element: int) -> c_void_p:
        return c_void_p(self.pointer + element * self.array.itemsize)


def values_of(rank: int, count: int, dtype: int) -> Array:
    """1 to 4: their sums and products over four ranks are exact in every type."""
    return encode((np.arange(count) * 7 + rank * 3) % 4 + 1, dtype)


def reduced(parts: list[Array], dtype: int, op: int) -> Array:
    wide = [from_bf16(part) if dtype == BF16 else part for part in parts]
    result = wide[0]
    for part in wide[1:]:
        result = REDUCERS[op](result, part)
        result = from_bf16(to_bf16(result)) if dtype == BF16 else result
    return encode(result, dtype)


class Collectives:
    """Each method prepares one collective; returns the call and what this rank's receive buffer must hold after it."""

    def __init__(self, rank: Rank, count: int, dtype: int) -> None:
        self.rank = rank
        self.count = count
        self.dtype = dtype
        n = rank.ranks
        self.parts = [values_of(r, count * n, dtype) for r in range(n)]
        self.send = Buffer(rank, count * n, dtype)
        self.recv = Buffer(rank, count * n, dtype)
        self.send.array[:] = self.parts[rank.rank]

    def call(self, function: str, *arguments: Any) -> None:
        self.rank.cann.call(function, *arguments, self.rank.comm, self.rank.stream)

    def prefix(self, rank: int) -> Array:
        return self.parts[rank][: self.count]

    def piece(self, rank: int, of: int) -> Array:
        return self.parts[rank][of * self.count : (of + 1) * self.count]

    def all_reduce(self, op: int) -> tuple[Callable[[], None], Array]:
        want = reduced([self.prefix(r) for r in range(self.rank.ranks)], self.dtype, op)
        return lambda: self.call(
            "HcclAllReduce", self.send.at(0), self.recv.at(0), c_uint64(self.count), self.dtype, op
        ), want

    def reduce(self, op: int) -> tuple[Callable[[], None], Array]:
        want = reduced([self.prefix(r) for r in range(self.rank.ranks)], self.dtype, op)
        root = self.rank.ranks - 1
        return lambda: self.call(
            "HcclReduce",
            *(
                self.send.at(0),
                self.recv.at(0),
                c_uint64(self.count),
                self.dtype,
                op,
                c_uint32(root),
            ),
        ), want if self.rank.rank == root else np.empty(0, want.dtype)

    def reduce_scatter(self, op: int) -> tuple[Callable[[], None], Array]:
        mine = [self.piece(r, self.rank.rank) for r in range(self.rank.ranks)]
        return lambda: self.call(
            "HcclReduceScatter",
            *(self.send.at(0), self.recv.at(0), c_uint64(self.count), self.dtype, op),
        ), reduced(mine, self.dtype, op)

    def all_gather(self) -> tuple[Callable[[], None], Array]:
        want = np.concatenate([self.prefix(r) for r in range(self.rank.ranks)])
        return lambda: self.call(
            "HcclAllGather", self.send.at(0), self.recv.at(0), c_uint64(self.count), self.dtype
        ), want

    def broadcast(self) -> tuple[Callable[[], None], Array]:
        def call() -> None:
            if self.rank.rank == 1:
                self.recv.array[: self.count] = self.prefix(1)
            self.call(
                "HcclBroadcast", self.recv.at(0), c_uint64(self.count), self.dtype, c_uint32(1)
            )

        return call, self.prefix(1)

    def scatter(self) -> tuple[Callable[[], None], Array]:
        send = self.send.at(0) if self.rank.rank == 1 else None
        return lambda: self.call(
            "HcclScatter", send, self.recv.at(0), c_uint64(self.count), self.dtype, c_uint32(1)
        ), self.piece(1, self.rank.rank)

    def all_to_all(self) -> tuple[Callable[[], None], Array]:
        want = np.concatenate([self.piece(r, self.rank.rank) for r in range(self.rank.ranks)])
        count = c_uint64(self.count)
        return lambda: self.call(
            "HcclAlltoAll",
            *(self.send.at(0), count, self.dtype, self.recv.at(0), count, self.dtype),
        ), want

    def counts(self) -> list[list[int]]:
        """What goes from rank to rank: uneven, with nothing between some."""
        n = self.rank.ranks
        return [[(i + 2 * j) % 3 * self.count // 3 for j in range(n)] for i in range(n)]

    def all_to_all_v(self) -> tuple[Callable[[], None], Array]:
        n, me, counts = self.rank.ranks, self.rank.rank, self.counts()
        from_me, to_me = counts[me], [counts[r][me] for r in range(n)]
        recv_at = list(itertools.accumulate([0, *to_me[:-1]]))
        send_at = [r * self.count for r in range(n)]
        arrays = [(c_uint64 * n)(*numbers) for numbers in (from_me, send_at, to_me, recv_at)]
        want = np.concatenate([self.piece(r, me)[: to_me[r]] for r in range(n)])

        def call() -> None:
            sc, sd, rc, rd = [(c_uint64 * n)(*a) for a in arrays]  # ours only for the call
            self.call(
                "HcclAlltoAllV",
                *(self.send.at(0), sc, sd, self.dtype),
                *(self.recv.at(0), rc, rd, self.dtype),
            )
            for array in (sc, sd, rc, rd):
                ctypes.memset(array, 0xFF, ctypes.sizeof(array))

        return call, want

    def all_to_all_vc(self) -> tuple[Callable[[], None], Array]:
        n, me, counts = self.rank.ranks, self.rank.rank, self.counts()
        matrix = (c_uint64 * (n * n))(*itertools.chain(*counts))
        starts = [list(itertools.accumulate([0, *row[:-1]])) for row in counts]
        want = np.concatenate(
            [self.parts[r][starts[r][me] : starts[r][me] + counts[r][me]] for r in range(n)]
        )
        return lambda: self.call(
            "HcclAlltoAllVC", self.send.at(0), matrix, self.dtype, self.recv.at(0), self.dtype
        ), want

    def all_gather_v(self) -> tuple[Callable[[], None], Array]:
        n = self.rank.ranks
        lengths = [self.count * (r + 1) // n for r in range(n)]
        starts = list(itertools.accumulate([0, *lengths[:-1]]))
        counts, at = (c_uint64 * n)(*lengths), (c_uint64 * n)(*starts)
        want = np.concatenate([self.parts[r][: lengths[r]] for r in range(n)])
        mine = c_uint64(lengths[self.rank.rank])
        return lambda: self.call(
            "HcclAllGatherV", *(self.send.at(0), mine, self.recv.at(0), counts, at, self.dtype)
        ), want

    def reduce_scatter_v(self, op: int) -> tuple[Callable[[], None], Array]:
        n, me = self.rank.ranks, self.rank.rank
        lengths = [self.count * (r + 1) // n for r in range(n)]
        starts = list(itertools.accumulate([0, *lengths[:-1]]))
        counts, at = (c_uint64 * n)(*lengths), (c_uint64 * n)(*starts)
        mine = [self.parts[r][starts[me] : starts[me] + lengths[me]] for r in range(n)]
        return lambda: self.call(
            "HcclReduceScatterV",
            *(self.send.at(0), counts, at, self.recv.at(0), c_uint64(lengths[me]), self.dtype, op),
        ), reduced(mine, self.dtype, op)

    def send_recv(self) -> tuple[Callable[[], None], Array]:
        """Round the ring: rank 0 sends first, the others receive first."""
        me, n, count = self.rank.rank, self.rank.ranks, c_uint64(self.count)
        after, before = c_uint32((me + 1) % n), c_uint32((me - 1) % n)

        def send() -> None:
            self.call("HcclSend", self.send.at(0), count, self.dtype, after)

        def call() -> None:
            if me == 0:
                send()
            self.call("HcclRecv", self.recv.at(0), count, self.dtype, before)
            if me != 0:
                send()

        return call, self.prefix((me - 1) % n)

    def batch_send_recv(self) -> tuple[Callable[[], None], Array]:
        """To and from every rank, itself included, receives first: no order of ours may deadlock."""
        n = self.rank.ranks
        items = (SendRecvItem * (2 * n))()
        for r in range(n):
            items[r] = SendRecvItem(1, self.recv.at(r * self.count), self.count, self.dtype, r)
            items[n + r] = SendRecvItem(0, self.send.at(r * self.count), self.count, self.dtype, r)
        want = np.concatenate([self.piece(r, self.rank.rank) for r in range(n)])
        return lambda: self.call("HcclBatchSendRecv", items, c_uint32(2 * n)), want

    def barrier(self) -> tuple[Callable[[], None], Array]:
        return lambda: self.call("HcclBarrier"), self.recv.array[:0]

    def in_place(self, op: int) -> tuple[Callable[[], None], Array]:
        def call() -> None:
            self.recv.array[: self.count] = self.prefix(self.rank.rank)
            self.call(
                "HcclAllReduce",
                self.recv.at(0),
                self.recv.at(0),
                c_uint64(self.count),
                self.dtype,
                op,
            )

        want = reduced([self.prefix(r) for r in range(self.rank.ranks)], self.dtype, op)
        return call, want


class SendRecvItem(ctypes.Structure):
    """HcclSendRecvItem."""

    _fields_ = (
        ("kind", ctypes.c_int),
        ("buffer", c_void_p),
        ("count", c_uint64),
        ("dtype", ctypes.c_int),
        ("peer", c_uint32),
    )


REDUCING = ("all_reduce", "reduce", "reduce_scatter", "reduce_scatter_v", "in_place")
MOVING = (
    *("all_gather", "all_gather_v", "broadcast", "scatter", "all_to_all", "all_to_all_v"),
    *("all_to_all_vc", "send_recv", "batch_send_recv", "barrier"),
)


def wrong(rank: Rank, buffer: Buffer, want: Array, what: list[Any]) -> list[Any]:
    got = buffer.array[: len(want)]
    if np.array_equal(got, want):
        return []
    first = int(np.argmax(got != want))
    return [[*what, rank.rank, first, str(got[first]), str(want[first])]]


def collectives(rank: Rank, job: Job) -> list[Any]:
    """Every collective, dtype and reduction, eager and replayed twice. Answers what was wrong, after what was done."""
    rank.join(job.root(rank))
    bad: list[Any] = []
    done = 0
    count = job.options["count"]
    for dtype in DTYPES:
        c = Collectives(rank, count, dtype)
        cases: list[tuple[str, tuple[int, ...]]] = [(name, ()) for name in MOVING]
        cases += [(name, (op,)) for name in REDUCING for op in REDUCERS]
        for name, arguments in cases:
            call, want = getattr(c, name)(*arguments)
            c.recv.array[:] = 0
            call()
            rank.sync()
            bad += wrong(rank, c.recv, want, [name, dtype, *arguments, "eager"])
            if name in ("broadcast", "in_place"):
                continue  # their input is written by the host, which a graph does not replay
            graph = rank.capture(call)
            for turn in ("replay", "replay again"):
                c.recv.array[:] = 0
                rank.replay(graph)
                rank.sync()
                bad += wrong(rank, c.recv, want, [name, dtype, *arguments, turn])
            rank.cann.call("aclmdlRIDestroy", graph)
            done += 1
    rank.leave()
    return [done, bad[:5]]


def rounding(rank: Rank, job: Job) -> list[Any]:
    """Every fp16 bit pattern against a shuffle of them, and bf16 likewise: rounded like numpy rounds."""
    rank.join(job.root(rank))
    bad: list[Any] = []
    count = 1 << 16
    order = np.random.default_rng(job.options["seed"]).permutation(count).astype(np.uint16)
    patterns = [np.arange(count).astype(np.uint16), order]
    for dtype, op in itertools.product((FP16, BF16), (SUM, PROD)):
        send, recv = Buffer(rank, count, dtype), Buffer(rank, count, dtype)
        send.array[:] = patterns[rank.rank].view(send.array.dtype)
        rank.all_reduce(send.pointer, recv.pointer, count, dtype, op)
        rank.sync()
        with np.errstate(all="ignore"):
            a, b = (p.view(np.float16) if dtype == FP16 else from_bf16(p) for p in patterns)
            result = REDUCERS[op](a, b)
        number = ~np.isnan(result)
        want = result.view(np.uint16) if dtype == FP16 else to_bf16(result)
        got = recv.array.view(np.uint16)
        as_float = got.view(np.float16) if dtype == FP16 else from_bf16(got)
        if not np.array_equal(got[number], want[number]) or not np.isnan(as_float[~number]).all():
            first = int(np.argmax(number & (got != want)))
            bad.append(
                [
                    dtype,
                    op,
                    first,
                    int(patterns[0][first]),
                    int(order[first]),
                    int(got[first]),
                    int(want[first]),
                ]
            )
    rank.leave()
    return bad


def sub_communicators(rank: Rank, job: Job) -> Any:
    """Even and odd ranks, each in a communicator of their own."""
    rank.join(job.root(rank))
    mine = [r for r in range(rank.ranks) if r % 2 == rank.rank % 2]
    sub = c_void_p()
    ids = (c_uint32 * len(mine))(*mine)
    config = comm_config()
    rank.cann.call(
        "HcclCreateSubCommConfig",
        *(ctypes.byref(rank.comm), c_uint32(len(mine)), ids, c_uint64(5 + rank.rank % 2)),
        *(c_uint32(mine.index(rank.rank)), ctypes.byref(config), ctypes.byref(sub)),
    )
    buffer = Buffer(rank, 3, FP32)
    buffer.array[:] = rank.rank
    whole, rank.comm = rank.comm, sub
    rank.all_reduce(buffer.pointer, buffer.pointer, 3)
    rank.sync()
    rank.leave()
    rank.comm = whole
    rank.leave()
    return buffer.array.tolist()


def init_all(rank: Rank, job: Job) -> Any:  # noqa: ARG001 its ranks need no other process
    """HcclCommInitAll: one process, one thread to launch from, a stream a device."""
    devices = (ctypes.c_int32 * 2)(0, 1)
    comms = (c_void_p * 2)()
    rank.cann.call("HcclCommInitAll", c_uint32(2), devices, comms)
    ends = [Rank(rank.cann, r, 2) for r in range(2)]
    buffers = []
    for end, comm in zip(ends, comms, strict=True):
        end.comm = c_void_p(comm)
        rank.cann.call("aclrtSetDevice", end.rank)
        buffers.append(Buffer(end, 2, FP32))
        buffers[-1].array[:] = end.rank + 1
        end.all_reduce(buffers[-1].pointer, buffers[-1].pointer, 2)
    for end in ends:
        end.sync()
        end.leave()
    return [buffer.array.tolist() for buffer in buffers]


if __name__ == "__main__":
    main(collectives, rounding, sub_communicators, init_all)
