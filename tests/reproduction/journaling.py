"""A reproduction's journal as a real one is written, in small."""

from pathlib import Path
from typing import Any

import msgspec
from tests.making import capture

from capture_canary.model import ArmName
from capture_canary.probe.messages import Captured, Ended, Started
from capture_canary.probe.settings import VLLM_KINDS, ProbeSettings
from capture_canary.reproduction.events import Header
from capture_canary.reproduction.journal import Journal, open_journal
from capture_canary.trend import law

K, SIZES = 5, (1, 2)
BEFORE = 2
"""Captures that vLLM made when it started."""


def header(**changes: Any) -> Header:
    settings = ProbeSettings(
        workload="vllm",
        python="/usr/bin/python3",
        collectives=K,
        rounds=3,
        graph_mode="FULL",
        shapes=SIZES,
        kinds=VLLM_KINDS,
        arms=("as_configured", "aiv"),
        seed=7,
    )
    own = {name: changes.pop(name) for name in [*changes] if hasattr(settings, name)}
    fields: dict[str, Any] = {
        "begun": 1e9,
        "settings": msgspec.structs.replace(settings, **own),
        "emulated": True,
        "stack": {"hcomm": "8.5.0"},
        "model": None,
    }
    return Header(**{**fields, **changes})


def write(journal: Journal, arm: ArmName, rounds: int = 3, *, grows: bool = True) -> None:
    """An arm with so many rounds, neither failed nor ended."""
    journal.begin(arm, None)
    for rank in range(2):
        versions = {"vllm": "0.23.0"}
        journal.add(Started(rank=rank, pid=1, device=rank, soc="Ascend910_9391", versions=versions))
    for number in range(rounds * len(SIZES)):
        for rank in range(2):
            order = BEFORE + number + 1
            one = capture(
                order,
                law.growing(K, 1, order) if grows else 0,
                round=number // len(SIZES),
                shape=SIZES[number % len(SIZES)],
            )
            journal.add(Captured(rank=rank, series=0, mode="AI_CPU", peers=None, capture=one))
    if rounds == 3:
        journal.add(Ended())


def written(folder: Path) -> Journal:
    """A journal whose first arm is complete, and whose second was interrupted in round 2."""
    journal = open_journal(folder, header())
    write(journal, "as_configured")
    journal.end(None)
    write(journal, "aiv", 2, grows=False)
    return journal
