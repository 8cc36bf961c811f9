"""The victim's ranks as the bench holds them: started, ordered to make a block, ended."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import NamedTuple

from bench.interference.beside import pin

from capture_canary import emulate, environments
from capture_canary.execute import traced_environment
from capture_canary.native import tracer_path

RANK = Path(__file__).parents[1] / "ranks" / "victim.py"
RANKS = 2
EMULATED = "cann=8.5.0,soc=a3,npus=4"
"""HCCL's AICPU lists grow here: the captures with the most for a tracer to count."""


class Cost(NamedTuple):
    """What a phase of a block took."""

    seconds: float
    """Mean of the ranks, which wait for one another."""
    typical: float
    """Of the median capture or replay, mean of the ranks."""
    cpu: float
    """Of all ranks together, s."""
    switched: float
    """How often a rank was put off its core."""


class Block(NamedTuple):
    """What a block took."""

    capture: Cost
    replay: Cost


class Size(NamedTuple):
    """Of a block."""

    captures: int
    replays: int


class Victim(AbstractContextManager["Victim"]):
    """Ranks on NPUs 0 and 1."""

    def __init__(self, environment: str | None, trace_dir: Path, *, traced: bool) -> None:
        """Start them with torch-npu in an environment, or (None) as plain clients of CANN."""
        self._folder = TemporaryDirectory()
        python, kind, variables = sys.executable, "acl", dict(os.environ)
        settings = emulate.parse(EMULATED)
        if environment is None:
            variables |= emulate.environment(settings, os.environ)
        else:
            made = environments.find(environment)
            python, kind = str(made.python), "torch"
            variables |= made.variables(settings, os.environ)
        variables |= {f"HCCL_{side}_SOCKET_PORT_RANGE": "auto" for side in ("HOST", "NPU")}
        variables["CAPTURE_CANARY_TRACE_DIR"] = str(trace_dir)
        if traced:
            variables = traced_environment(variables, str(tracer_path()))
        self._blocks = 0
        self._ranks = [
            subprocess.Popen(
                [python, str(RANK), kind, str(rank), str(RANKS), self._folder.name],
                env=variables,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            for rank in range(RANKS)
        ]
        self._replies()

    @property
    def pids(self) -> set[int]:
        """The ranks' processes."""
        return {rank.pid for rank in self._ranks}

    def _replies(self) -> list[dict[str, dict[str, float]]]:
        found = []
        for rank in self._ranks:
            assert rank.stdout is not None
            line = rank.stdout.readline()
            assert line, f"a rank of the victim ended with {rank.wait()}"
            found.append(json.loads(line))
        return found

    def block(self, size: Size) -> Block:
        """Have them make a block."""
        self._blocks += 1
        for rank in self._ranks:
            assert rank.stdin is not None
            rank.stdin.write(f"{self._blocks} {size.captures} {size.replays}\n")
            rank.stdin.flush()
        replies = self._replies()
        return Block(*(_together([one[phase] for one in replies]) for phase in Block._fields))

    def pin(self, cores: Sequence[int]) -> None:
        """Have all their threads run on these cores."""
        for pid in self.pids:
            pin(pid, cores)

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """End them."""
        for rank in self._ranks:
            rank.kill()
        for rank in self._ranks:
            rank.communicate()
        self._folder.cleanup()


def _together(ranks: Sequence[dict[str, float]]) -> Cost:
    return Cost(
        sum(rank["seconds"] for rank in ranks) / len(ranks),
        sum(rank["typical"] for rank in ranks) / len(ranks),
        sum(rank["cpu"] for rank in ranks),
        sum(rank["switched"] for rank in ranks),
    )
