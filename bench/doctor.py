"""How long `doctor` takes on a synthetic node of 2,000 processes and 16 NPUs: python bench/doctor.py.

The node: 16 workers of two servers in two containers, each holding an NPU; the others are half kernel threads and half
system processes with 40 open files each. npu-smi is the emulated one.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.stack import nodes

PROCESSES, NPUS, OPEN_FILES, RUNS = 2000, 16, 40, 7


def node(folder: Path) -> None:
    """Lay the node out."""
    servers = [
        {"pid": 100_000 + s, "is": "serve", "in": f"c{s}", "cgroup": "v2-containerd"}
        for s in (0, 1)
    ]
    workers = [
        {
            "pid": 100_100 + n,
            "ppid": 100_000 + n // 8,
            "is": "worker",
            "in": f"c{n // 8}",
            "cgroup": "v2-containerd",
            "environ": "wiped",
            "npus": [n],
        }
        for n in range(NPUS)
    ]
    others = [
        {"pid": pid, "argv": [] if pid % 2 else ["/usr/bin/daemon", f"--id={pid}"]}
        for pid in range(2, PROCESSES + 1 - len(servers) - len(workers))
    ]
    image = {"cann": {"toolkit": "9.0.0"}, "packages": {"vllm": "0.23.0", "vllm_ascend": "0.23.0"}}
    nodes.build(
        {"containers": {"c0": image, "c1": image}, "processes": [*servers, *workers, *others]},
        folder,
    )
    for one in others:
        for number in range(3, OPEN_FILES if one["argv"] else 0):
            (folder / "proc" / str(one["pid"]) / "fd" / str(number)).symlink_to(
                f"socket:[{number}]"
            )


def main() -> None:
    """Run the whole command some times."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        node(folder)
        command = [
            sys.executable,
            "-m",
            "capture_canary.cli",
            "doctor",
            "--json",
            "--emulate",
            "cann=9.1.0,soc=a3",
        ]
        command += ["--proc", str(folder / "proc"), "--state-dir", text]
        env = {**os.environ, "HOME": text, "PYTHONPYCACHEPREFIX": f"{text}/pycache"}
        env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
        took, used, output = [], [], b""
        for _ in range(RUNS + 1):  # the first one lays the emulated CANN out
            begun, cpu = time.perf_counter(), os.times()
            done = subprocess.run(command, capture_output=True, env=env, check=False)
            took.append(time.perf_counter() - begun)
            after = os.times()
            used.append(
                after.children_user
                + after.children_system
                - cpu.children_user
                - cpu.children_system
            )
            assert done.returncode == 1, done.stderr.decode()
            output = done.stdout
        workers = output.count(b'"role": "Worker_TP0"')
        assert workers == NPUS, workers
        count = len(list((folder / "proc").iterdir()))
        print(
            f"{count} processes, {workers} workers on {NPUS} NPUs, {RUNS} runs of the whole command"
        )
        print(
            f"wall  median {statistics.median(took[1:]) * 1e3:.0f} ms, best {min(took[1:]) * 1e3:.0f} ms"
        )
        print(
            f"CPU   median {statistics.median(used[1:]) * 1e3:.0f} ms, best {min(used[1:]) * 1e3:.0f} ms"
        )


if __name__ == "__main__":
    main()
