"""The expansion mode of a serving process, by whoever is to be trusted most, with the doubts that remain.

In order of trust: the trace (what HCCL itself read), /proc/PID/environ, the pod's spec, the container's configuration,
the default of the SoC.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from capture_canary.stack import serving
from capture_canary.stack.environ import DETERMINISTIC, MODE, Environment
from capture_canary.stack.exposure import effective_mode, family
from capture_canary.trace.header import ProcessFacts

Source = Literal["trace", "environment", "parent", "pod", "container", "default", "unknown"]
"""Who said which mode: a label value of `mitigation`, so few, short and stable."""

MODES = frozenset(
    {
        "HOST",
        "HOST_TS",
        "AI_CPU",
        "AICPU_CacheDisable",
        "AICPU_TS",
        "AIV",
        "CCU_MS",
        "CCU_SCHED",
    }
)
"""What HCCL knows in any version, compared exactly."""

IN_PROCESS = (
    "the process may set another mode itself before its first collective (os.environ, hccl_config)"
)
MINIMAX = "vllm-ascend sets AIV itself for MiniMax-M2 where none is set"
LARGE = "on A3 large payloads leave AIV for AI_CPU, above a size that is not published"
SEVERAL = "several communicators: AIV is safe for one at a time only"
OVERRIDDEN = "a communicator has a mode of its own (hccl_config)"


class Said(NamedTuple):
    """An environment and who told it, the most trusted one first."""

    source: Source
    environment: Environment


class Mode(msgspec.Struct, frozen=True, kw_only=True):
    """The mode and what it rests on."""

    set_to: str | None
    """As it was set; None where it is not."""
    in_force: str | None
    """None where nobody knows."""
    source: Source
    doubts: tuple[str, ...] = ()
    effective: bool = True
    """False where the mode is set, but HCCL will not go by it, or not always."""


def mode_of(
    said: Sequence[Said], *, traced: ProcessFacts | None, soc: str | None, argv: Sequence[str] = ()
) -> Mode:
    """Return the mode of a process.

    Args:
        said: the environments that could be read.
        traced: what its trace says, where it has one.
        soc: name or family of the node's SoC.
        argv: its command line, or that of the server it belongs to.
    """
    set_to, source = _set_to(said, traced)
    in_force = effective_mode(set_to, soc) if source != "unknown" else None
    doubts = list(_doubts(set_to, source, traced, argv))
    flaws = list(_flaws(set_to, in_force, said, soc))
    if in_force == "AIV" and family(soc) == "a3":
        doubts.append(LARGE)
    if (traced and traced.communicators_made > 1) or serving.communicators_likely(argv):
        doubts.append(SEVERAL)
    return Mode(
        set_to=set_to,
        in_force=in_force,
        source=source,
        doubts=(*flaws, *doubts),
        effective=not flaws,
    )


def _set_to(said: Sequence[Said], traced: ProcessFacts | None) -> tuple[str | None, Source]:
    if traced is not None and traced.mode_state != "hccl_not_started":
        return traced.mode, "trace"
    for source, environment in said:
        if MODE in environment.values:
            return environment.values[MODE] or None, source
        if environment.complete:
            return None, "default"
    return None, "unknown"


def _doubts(
    set_to: str | None, source: Source, traced: ProcessFacts | None, argv: Sequence[str]
) -> list[str]:
    if source == "trace":
        own = traced is not None and any(one.mode for one in traced.communicators)
        return [OVERRIDDEN] if own else []
    doubts = [IN_PROCESS]
    if set_to is None and serving.names_model(argv, "MiniMax-M2"):
        doubts.append(MINIMAX)
    return doubts


def _flaws(
    set_to: str | None, in_force: str | None, said: Sequence[Said], soc: str | None
) -> list[str]:
    flaws = []
    if set_to and set_to not in MODES:
        flaws.append(f'"{set_to[:32]}" is no mode (names are compared exactly): HCCL refuses it')
    elif set_to and in_force != set_to:
        flaws.append(
            f"{set_to} is not for {(family(soc) or '').upper()}: {in_force} stays in force"
        )
    values = [e.values[DETERMINISTIC] for _, e in said if DETERMINISTIC in e.values]
    if in_force == "AIV" and values and values[0].lower() in {"true", "strict"}:
        flaws.append(f"{DETERMINISTIC}={values[0]} comes first: AIV may not be taken")
    return flaws
