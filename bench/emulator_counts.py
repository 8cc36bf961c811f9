"""How the emulated HCCL's copies compare: to hcomm's own, row by row, and to the closed form at random points."""

import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.emulator.growth_law import HCOMM, Law, emulate, limited, measured
from tests.emulator.hccl_client import Group, GrowthServer, build_counter
from tests.emulator.hccl_growth import serve

RANDOM_RUNS = 100


def rows(server: GrowthServer) -> tuple[int, int, int]:
    """Return rows of the file, how many differ in copies, and how many in bytes."""
    total = copies = sizes = 0
    for (hcomm, op, k, peers, destroyed), want in measured():
        points = server.run(
            emulate(*HCOMM[hcomm], int(peers), scratch="scratch" in op),
            op=op.removesuffix("_scratch"),
            k=int(k),
            captures=12,
            destroyed=destroyed == "1",
        )
        total += len(want)
        copies += sum(p["Copies"] != w[0] for p, w in zip(points, want, strict=True))
        sizes += sum(p["Bytes"] != w[1] for p, w in zip(points, want, strict=True))
    return total, copies, sizes


def random_points(server: GrowthServer) -> tuple[int, int, int]:
    """Return captures at random k <= 16, P <= 7, S, R, n <= 30, and how many differ in copies and in bytes."""
    total = copies = sizes = 0
    for seed in range(RANDOM_RUNS):
        dice = random.Random(seed)  # noqa: S311 the same points in each run
        k, peers, scratch, roce = (
            dice.randint(1, 16),
            dice.randint(1, 7),
            dice.random() < 0.5,
            dice.random() < 0.5,
        )
        n = limited(k, peers, dice.randint(1, 30))
        hcomm = dice.choice(["8.5", "9.0"])
        op, destroyed = dice.choice(["AllReduce", "AllGather"]), dice.random() < 0.5
        shape = emulate(*HCOMM[hcomm], peers, scratch=scratch, roce=roce)
        _, *points = server.run(shape, op=op, k=k, captures=n, destroyed=destroyed)
        law = Law(2_122_688 if hcomm == "8.5" else 2_122_720, k, peers, int(scratch), int(roce), 1)
        want = [law.growing(capture + 1) for capture in range(n)]
        total += n
        copies += sum(p["Copies"] != w[0] for p, w in zip(points, want, strict=True))
        sizes += sum(p["Bytes"] != w[1] for p, w in zip(points, want, strict=True))
    return total, copies, sizes


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        counter = build_counter(Path(folder))
        group = Group(serve, 2, Path(folder), threads=True, env={"LD_PRELOAD": counter})
        server = GrowthServer(group)
        print("| compared to | points | copies differ | bytes differ | seconds |")
        print("| --- | --- | --- | --- | --- |")
        failed = False
        for name, check in (("hcomm's own sources", rows), ("closed form, random", random_points)):
            begin = time.monotonic()
            total, copies, sizes = check(server)
            print(f"| {name} | {total} | {copies} | {sizes} | {time.monotonic() - begin:.1f} |")
            failed |= copies + sizes > 0
        group.kill()
    sys.exit(failed)


if __name__ == "__main__":
    main()
