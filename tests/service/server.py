"""A stand-in for a serving process, as far as graph capture goes: two ranks that capture, through CANN's own interface.

usage: server.py ROUNDS    with ASCEND_HOME_PATH set; run it by `capture-canary exec` to have it traced
"""

import ctypes
import os
import sys

from capture_canary.probe.messages import Kind, Spec
from capture_canary.probe.workloads.acl import AclWorkload

SPEC = Spec(
    workload="acl",
    arm="as_configured",
    devices=(0, 1),
    collectives=4,
    shapes=(256,),
    rounds=int(sys.argv[1]),
    kinds=(Kind(collective="AllReduce", graphs="destroyed"),),
    buffer_mb=1,
    deadline_seconds=60,
)


def load_weights() -> None:
    """Copy to the device outside any capture: what shows that the tracer counts."""
    acl = ctypes.CDLL(os.environ["ASCEND_HOME_PATH"] + "/lib64/libascendcl.so")
    size, weights = ctypes.c_size_t(64), ctypes.create_string_buffer(64)
    device = ctypes.c_void_p()
    assert acl.aclrtMalloc(ctypes.byref(device), size, 2) == 0
    assert acl.aclrtMemcpy(device, size, weights, size, 1) == 0


def serve(rank: int, get_root: int, give_root: int) -> None:
    """Capture as a server that loads again and again."""
    workload = AclWorkload(SPEC, rank)
    workload.open()
    load_weights()
    if rank == 0:
        root = workload.root_info()
        os.write(give_root, root)
    else:
        root = os.read(get_root, 8192)
    workload.begin(SPEC.kinds[0], root)
    for _ in range(SPEC.rounds):
        workload.capture(SPEC.shapes[0])
    workload.end()
    workload.close()


def main() -> None:
    """Fork the second rank; the first is this process."""
    get_root, give_root = os.pipe()
    child = os.fork()
    serve(1 if child == 0 else 0, get_root, give_root)
    if child:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
