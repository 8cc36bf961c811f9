"""The faults that are injected: each with how, and what must come of it. docs/reliability.md is made from this table.

`tests/faults/test_*.py` inject them; `test_table.py` holds table, tests and page together.
"""

from typing import NamedTuple

from capture_canary.probe.runner import FailureKind

GROWING = "cann=8.5.0,soc=a3,npus=4"
"""The node that faults meet; left alone, it is found degraded."""


class ProbeFault(NamedTuple):
    """A fault of CANN or of a child, during a probe of the daemon."""

    name: str
    fault: str
    """As CAPTURE_CANARY_EMULATE_FAULT takes it."""
    reason: str
    """What the verdict's reason must hold."""
    kind: FailureKind
    """The reason that `probe_failures_total` counts."""
    emulate: str = GROWING
    ranks: int = 2

    @property
    def hangs(self) -> bool:
        """It takes the whole of its deadline."""
        return "hang:" in self.fault

    @property
    def how(self) -> str:
        """In words."""
        node = f" on a node with `{self.emulate}`" if self.emulate != GROWING else ""
        ranks = f", {self.ranks} ranks" if self.ranks != 2 else ""  # the default
        return (f"`{self.fault}`" if self.fault else "nothing but its settings") + node + ranks


class Fault(NamedTuple):
    """Any other fault."""

    name: str
    how: str
    outcome: str


PROBES = (
    ProbeFault("hangs at open", "hang:aclrtSetDevice:1@1", "in time", "timeout"),
    ProbeFault("hangs in HCCL's initialisation", "hang:HcclCommInitRootInfoConfig:1@0", "in time", "timeout"),
    ProbeFault("hangs in a collective", "hang:HcclAllReduce:20@1", "rank 1", "timeout"),
    ProbeFault("hangs at the end of a capture", "hang:aclmdlRICaptureEnd:2@1", "rank 1", "timeout"),
    ProbeFault("hangs in destroy", "hang:aclmdlRIDestroy:1@0", "in time", "timeout"),
    ProbeFault("a rank never starts", "hang:aclInit:1@1", "in time", "timeout"),
    ProbeFault("dies at open", "die:aclrtSetDevice:1@0", "rank 0 failed in Open", "start"),
    ProbeFault("dies before HCCL", "die:HcclGetRootInfo:1@0", "rank 0 failed", "child"),
    ProbeFault("dies in HCCL's initialisation", "die:HcclCommInitRootInfoConfig:1@1", "rank 1 failed", "child"),
    ProbeFault("dies in the positive control", "die:HcclAllGather:1@1", "rank 1 failed", "child"),
    ProbeFault("dies at the begin of a capture", "die:aclmdlRICaptureBegin:2@0", "rank 0 failed", "child"),
    ProbeFault("dies in a capture", "die:HcclAllReduce:20@1", "rank 1 failed", "child"),
    ProbeFault("dies at the end of a capture", "die:aclmdlRICaptureEnd:3@1", "rank 1 failed", "child"),
    ProbeFault("dies in destroy", "die:aclmdlRIDestroy:1@1", "rank 1 failed", "child"),
    ProbeFault("dies as its communicator ends", "die:HcclCommDestroy:1@0", "rank 0 failed", "child"),
    ProbeFault("both ranks die at once", "die:HcclAllReduce:40", "failed in", "child"),
    ProbeFault("a rank dies once its peer has failed", "slow:HcclCommInitRootInfoConfig:200@0;die:HcclCommInitRootInfoConfig:1@0;fail:HcclCommInitRootInfoConfig:1:13@1", "rank 0 failed in RunControl: its process died (signal 9)", "child"),
    ProbeFault("one rank of four dies in a capture", "die:HcclAllReduce:20@2", "rank 2 failed in MakeCapture: its process died (signal 9)", "child", ranks=4),
    ProbeFault("one rank of four hangs in a collective", "hang:HcclAllReduce:20@3", "rank 3", "timeout", ranks=4),
    ProbeFault("one rank of two is refused a collective", "fail:HcclAllReduce:20:4@1", "returned 4", "child"),
    ProbeFault("the NPU is taken between gate and probe", "fail:aclrtSetDevice:1:107001@1", "returned 107001", "start"),
    ProbeFault("the NPU fails", "fail:aclrtSetDevice:1:507899", "aclrtSetDevice returned 507899", "start"),
    ProbeFault("HBM runs out at open", "fail:aclrtMalloc:2:207001@0", "207001", "start"),
    ProbeFault("streams run out", "fail:aclmdlRICaptureBegin:3:207008", "207008", "child"),
    ProbeFault("captures are refused", "fail:aclmdlRICaptureBegin:1:107030", "107030", "child"),
    ProbeFault("HCCL finds its port taken", "fail:HcclGetRootInfo:1:7@0", "HcclGetRootInfo", "child"),
    ProbeFault("CANN does not go with the driver", "fail:aclInit:1:500000", "aclInit returned 500000", "start"),
)  # fmt: skip

CHILDREN = (
    Fault("the child ignores SIGTERM", "a handler, and a deadline of 1 s", "killed within its grace; the reason says `deadline`"),
    Fault("the child stops itself", "SIGSTOP, and a deadline of 1 s", "the same"),
    Fault("the child forks 100 processes that leave its group", "fork, setsid", "all of them are found by their mark and killed"),
    Fault("the child floods its records", "writes without end", "ended at a bound of bytes; the reason says so"),
    Fault("the child floods its standard error", "writes without end", "the same"),
    Fault("the child writes garbage", "random bytes for records", "ended; the reason quotes the begin"),
    Fault("the child writes a line without end", "100 kB without a line break", "ended; the reason says so"),
    Fault("the child crashes", "SIGSEGV", "the reason has the signal"),
    Fault("the child claims success and captured nothing", "an `ended` record alone", "no verdict comes of it: nothing was captured"),
    Fault("no descriptor is left for a child", "RLIMIT_NOFILE", "the reason says that it could not be started"),
    Fault("the temporary folder is full", "a full tmpfs", "the reason says `No space left`"),
    Fault("the tracer does not load", "an empty file for the library", "unknown, `tracer_blind`, on a good and on a bad stack"),
    Fault("a rank that has answered is killed while its peer hangs", "SIGKILL, the other one in `hang:aclmdlRICaptureEnd:2@1`", "ended at once, not at the deadline; the reason has the rank that was killed"),
    Fault("the child cannot be killed", "the ranks frozen by a cgroup freezer of version 1; where there is none, SIGKILL withheld", "the probe ends in time, probing is latched off; once they are gone nothing is left, and an operator unlatches"),
)  # fmt: skip

GATE = (
    Fault("`npu-smi` hangs", "a script that sleeps", "no probe, `npus_unknown`; the script is ended"),
    Fault("`npu-smi` prints garbage", "random bytes", "no probe, `npus_unknown`"),
    Fault("`npu-smi` prints without end", "`yes`", "no probe, `npus_unknown`"),
    Fault("another container holds the NPUs", "`npu-smi` says so, with -8020", "no probe, `npus_unknown`"),
    Fault("the NPUs are unhealthy", "`Alarm` in `npu-smi`'s table", "no probe, `unhealthy`"),
    Fault("others hold all NPUs", "a process that opened them", "no probe, `busy`; the next one runs once they are free"),
    Fault("HBM is taken between gate and probe", "a process that has all of it, and an `npu-smi` that shows what was", "unknown, 207001 in the reason; the next one knows"),
    Fault("streams are taken between gate and probe", "the same of all streams", "unknown, 207008 in the reason; the next one knows"),
    Fault("an NPU vanishes between gate and probe", "an `npu-smi` that shows four, a CANN that has two", "unknown, how many CANN sees in the reason, counted as `start`; the next one knows"),
    Fault("another daemon probes on this node", "the lock is held", "no probe, `locked`; the next one runs"),
    Fault("CANN is not for this driver, by the vendor's table", "CANN 9.1.0 with driver 25.0.7", "no probe, `driver_mismatch`"),
    Fault("HBM is not given back after a probe", "`npu-smi` shows 6,000 MB more from then on", "the verdict is kept, probing is latched off and counted as `latched`; `probing_latched` is 1, which alerts"),
    Fault("the NPU fails in two probes in a row", "`fail:aclrtSetDevice:1:507899`", "latched off with the code; `rm` of the file turns probing on"),
    Fault("others come and go around the gate", "a process that takes and gives back NPUs at random moments, 1,000 attempts to probe", "no arm begins on an NPU that was held throughout the look before it"),
    Fault("a process comes onto an NPU of a running probe", "a process that opens it, the probe hanging", "the probe gives way: ended, its NPUs released, `yielded`; not latched off"),
    Fault("a process comes between two arms of a probe", "a process that opens an NPU there", "the second arm does not begin; what the first measured stands"),
    Fault("two daemons on one node are asked to probe at random moments", "two daemons with a lock file in common", "never two probes at a time"),
    Fault("servers start while one probe follows the other", "200 jobs with HCCL's own ports, on the probe's NPUs or beside them", "each gets its ports and NPUs; not latched off"),
    Fault("a server starts HCCL in the middle of a probe", "a second job on other NPUs of the node, the probe hanging", "the server succeeds"),
    Fault("the clock jumps ahead by a year", "injected clock", "one probe at most, and the next within an interval"),
    Fault("the clock jumps back by a year", "injected clock", "no probe early, and the next within an interval"),
    Fault("the wall clock is set while a probe runs", "injected clock, by a year either way", "the verdict comes, the probe's length and the budget are right"),
)  # fmt: skip

PHASES = {
    "open": "hang:aclrtSetDevice:1@0",
    "HCCL's initialisation": "hang:HcclCommInitRootInfoConfig:1@0",
    "the positive control": "hang:HcclAllGather:1@0",
    "a capture": "hang:aclmdlRICaptureEnd:2@0",
    "destroy": "hang:aclmdlRIDestroy:1@0",
    "the end of its communicator": "hang:HcclCommDestroy:1@0",
}
SIGNALS = {
    "SIGTERM": "it ends with 0, nothing left; the next daemon comes to its verdict",
    "SIGKILL": "nothing left; the next daemon comes to its verdict",
    "SIGSTOP, later SIGCONT": "the probe ends at its deadline, unknown; the next one comes to its verdict",
}
LOOKING = SIGNALS | {
    "SIGTERM": "it ends with 0 once `npu-smi` has had its 10 s, nothing left; the next daemon comes to its verdict",
    "SIGSTOP, later SIGCONT": "the look goes on, the verdict comes",
}
ANY_MOMENT = SIGNALS | {"SIGSTOP, later SIGCONT": "the verdict comes"}
DAEMON = (
    *(
        Fault(f"{signals}, a probe being in {phase}", f"`{fault}`, then `kill`", outcome)
        for phase, fault in PHASES.items()
        for signals, outcome in SIGNALS.items()
    ),
    *(
        Fault(f"{signals}, the gate looking at the NPUs", "the emulated node locked, so that `npu-smi` waits, then `kill`", outcome)
        for signals, outcome in LOOKING.items()
    ),
    *(
        Fault(f"{signals} at random moments", "`kill` at some time from when a probe is asked for to some time after its end", outcome)
        for signals, outcome in ANY_MOMENT.items()
    ),
    Fault("two daemons with one state folder", "a second one started", "the second ends with 1 and says why; the first goes on"),
    Fault("two daemons with one lock", "a second one, with a state folder of its own, while the first probes", "the second skips, `locked`; the first gone, it comes to its verdict"),
    Fault("its port is taken", "a listener", "it ends with 1 and says why"),
    Fault("the memory limit of the container is reached", "a memory cgroup that has room for the daemon alone", "the kernel ends the probe, not the daemon: unknown; with room the next one comes to its verdict"),
    Fault("the daemon has no descriptor left", "RLIMIT_NOFILE lowered while it runs, to none and up to three spare ones", "it lives; each probe is skipped, or unknown, says `Too many open files` and is counted; raised again, the next one comes to its verdict, and the history has it"),
    Fault("the configuration is replaced by garbage", "random bytes in the file", "the settings stay in force, `config_last_reload_successful` is 0 until it is mended"),
    Fault("1,000 idle connections", "opened beside a probe", "metrics are served, the probe comes to its verdict"),
    Fault("Prometheus reads slowly", "200 requests, and one byte read in a while", "other scrapes are served, the probe comes to its verdict"),
    Fault("the disk is full", "a full tmpfs for the state folder", "the verdict comes, the history is in memory, `history_in_memory` is 1; with room it is written"),
    Fault("the disk is read-only", "remounted", "the same"),
    Fault("the disk is slow", "each write and sync to the state folder takes 100 ms more, by a preloaded library", "the verdict comes and is remembered on disk"),
    Fault("the disk stands still", "the same, without end, as a probe is asked for", "metrics are served, no NPU is held; when it goes on the verdict comes and is remembered"),
)  # fmt: skip

HISTORY = (
    Fault("the history is damaged", "random bytes at random places of the file, 8 times", "the verdict comes and is remembered on disk; what is of no use is put aside"),
    Fault("the history is locked", "another process holds an exclusive lock", "the verdict comes, the history is in memory"),
    Fault("the history is from the future", "a newer schema version", "put aside, not changed; a new one is begun"),
    Fault("the history is removed", "`rm` while the daemon runs", "a new one is begun, with what is open"),
)  # fmt: skip

INPUTS = (
    Fault("a torn trace file", "cut in its header", "the good server beside it is judged"),
    Fault("a forged trace file", "random bytes behind a good magic", "the same"),
    Fault("a huge trace file", "64 GiB, sparse", "the same, at no cost of memory"),
    Fault("a trace file that is a symlink", "to a secret", "the same; nothing of the secret is read"),
    Fault("a trace file that is a FIFO", "`mkfifo`", "the same, without waiting"),
    Fault("a trace file that is a folder", "`mkdir`", "the same"),
    Fault("a trace file of another user", "mode 0000, as nobody", "the same"),
    Fault("1,000 trace files", "of processes that never were", "the same; those beyond the bound are said to be left out"),
    Fault("a trace file truncated while it is followed", "to nothing", "no verdict comes of less, nothing breaks"),
    Fault("a followed log is rotated", "renamed, a new one in its place", "the suspicion comes as without"),
    Fault("a followed log is truncated", "copied away and cut", "the same"),
    Fault("a followed log is replaced by a FIFO", "`mkfifo`", "nothing waits; the log that comes after it is read"),
    Fault("the Kubernetes API is down", "its address answers nothing", "the servers are found; which pods they are is said not to be seen"),
    Fault("the Docker Engine hangs", "a socket that answers nothing", "the same of their variables, in time"),
)  # fmt: skip

AREAS = {
    "CANN and the children of a probe": tuple(
        Fault(
            one.name,
            one.how,
            f"unknown, “{one.reason}” in the reason, counted as `{one.kind}`; the next probe comes to its verdict",
        )
        for one in PROBES
    ),
    "A child that is not ours any more": CHILDREN,
    "The node and the gate": GATE,
    "The daemon": DAEMON,
    "The history": HISTORY,
    "What others write": INPUTS,
}


def page() -> str:
    """Return the table in Markdown."""
    parts = []
    for area, faults in AREAS.items():
        rows = "".join(f"| {one.name} | {one.how} | {one.outcome} |\n" for one in faults)
        parts.append(
            f"### {area}\n| fault | injected by | what must come of it |\n| --- | --- | --- |\n{rows}"
        )
    return "\n".join(parts)
