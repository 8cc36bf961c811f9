"""The runner's child as a script of a few lines, to misbehave as a test wants."""

import os
import sys
import textwrap

import msgspec

from capture_canary.probe import runner, watch
from capture_canary.probe.cancel import Cancel
from capture_canary.probe.messages import Ended, Kind, Spec, Started, encode

STARTED = encode(Started(rank=0, pid=1, device=0, soc="x", versions={}))
ENDED = encode(Ended())


def spec(deadline: float = 10.0) -> Spec:
    return Spec(
        workload="acl",
        arm="as_configured",
        devices=(0, 1),
        collectives=1,
        shapes=(1,),
        rounds=1,
        kinds=(Kind(collective="AllReduce", graphs="kept"),),
        buffer_mb=1,
        deadline_seconds=deadline,
    )


def run(
    script: str,
    *,
    deadline: float = 10.0,
    on_record: watch.OnRecord = lambda _record: True,
    cancel: Cancel | None = None,
    rounds: int = 1,
) -> runner.ArmRun:
    prelude = (
        "import os, signal, sys, time\nrecords = int(sys.argv[1])\nline = sys.stdin.readline()\n"
    )
    return runner.run_arm(
        msgspec.structs.replace(spec(deadline), rounds=rounds),
        os.environ,
        mode=None,
        on_record=on_record,
        cancel=cancel,
        command=(sys.executable, "-c", prelude + textwrap.dedent(script)),
    )
