"""While records stream in: whether more of them could change the verdict, and which arm to run next."""

from collections.abc import Iterable, Mapping, Sequence

from capture_canary.model import ArmName, Series
from capture_canary.stack import exposure, versions
from capture_canary.trend import growth
from capture_canary.trend.case import PROBE_KINDS, Kind


def growing_kinds(series: Sequence[Series], *, arm: ArmName = "as_configured") -> list[Kind]:
    """Return the kinds that grow under an arm: the AIV arm need run no others."""
    rising = [one for one in series if one.arm == arm and growth.growing([one])]
    return list(dict.fromkeys((one.collective, one.graphs) for one in rising))


def decided(
    series: Sequence[Series],
    *,
    ranks: int,
    arm: ArmName = "as_configured",
    kinds: Iterable[Kind] = PROBE_KINDS,
) -> bool:
    """Whether further captures under an arm could not change the verdict.

    Growth in one kind is enough, and flat takes them all; either way every rank must have spoken.
    """
    of_arm = [one for one in series if one.arm == arm]
    states = [_kind_state(of_arm, kind, ranks) for kind in kinds]
    return True in states or (bool(states) and all(state is False for state in states))


def next_arm(
    series: Sequence[Series],
    *,
    configured_mode: str | None,
    soc: str | None,
    hcomm: str | None,
    arm_failures: Mapping[ArmName, str],
) -> ArmName | None:
    """Return the arm to run once `as_configured` is decided; None where nothing is left to learn.

    Growth is attributed by AIV, unless mode or version alone tell the cause. A flat measurement in a mode that keeps
    collectives off the AICPU is checked against AI_CPU, unless the stack is known not to be exposed.
    """
    own = growth.growing(one for one in series if one.arm == "as_configured")
    mode = exposure.effective_mode(configured_mode, soc)
    if own is None:
        return None
    if own:
        told = exposure.mitigates(configured_mode or mode) or versions.at_least(
            hcomm, exposure.FIXED
        )
        wanted: ArmName | None = None if told else "aiv"
    else:
        exposed = exposure.exposure(soc=soc, hcomm=hcomm, mode=configured_mode).exposed
        wanted = "ai_cpu" if exposure.mitigates(mode) and exposed is not False else None
    tried = {one.arm for one in series} | set(arm_failures)
    return None if wanted in tried else wanted


def _kind_state(series: Sequence[Series], kind: Kind, ranks: int) -> bool | None:
    """Whether a kind grows, on all ranks; None while that is open."""
    of_kind = [one for one in series if (one.collective, one.graphs) == kind]
    states = [growth.growing([one]) for one in of_kind]
    if {one.rank for one in of_kind} < set(range(ranks)) or None in states:
        return None
    return any(states)
