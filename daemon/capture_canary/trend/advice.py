"""What to do about a verdict, in a sentence or two."""

from capture_canary.model import Cause, Judgement, Report
from capture_canary.stack import exposure
from capture_canary.trend.impact import negligible

AIV_WARNING = (
    "validate AIV with your model first: it can hang models with mixture of experts or fused communication (MC2), "
    "and only one communicator of a process may use it"
)

_BY_CAUSE: dict[Cause, str] = {
    "mode_not_effective": (
        "Set HCCL_OP_EXPANSION_MODE in the environment that starts the server, before its first collective; look for a "
        "communicator that overrides it, and on A3 for payloads above the size at which AIV falls back to AI_CPU. "
        "Or move to CANN 9.1.0 or later."
    ),
    "regression": (
        "Check which hcomm is really loaded (share/info/hcomm/version.info), then report this to the vendor with the "
        f"output of `capture-canary probe --json`. Meanwhile HCCL_OP_EXPANSION_MODE=AIV may help; {AIV_WARNING}."
    ),
    "copies_unattributed": (
        "Keep the output of `capture-canary probe --json` and compare with CANN 9.1.0 or later; "
        "do not count on AIV here."
    ),
    "other": (
        "The H2D copies are not it: look for host memory pressure, a growing heap (garbage collection inside the "
        "capture) or a driver that slows down, and compare with another node of the same image."
    ),
    "time_only": (
        "Let copies be counted (start the server by `capture-canary exec`, or allow the probe its tracer): "
        "they tell the cause."
    ),
    "suspect": (
        "Let copies be counted (start the server by `capture-canary exec`), or run `capture-canary probe` on free NPUs."
    ),
    "tracer_blind": (
        "See that LD_PRELOAD reaches the process with libcapturetrace.so in it, that no DISABLE file lies in the trace "
        "folder, and that the process is not statically linked or set-uid."
    ),
}


def remedy(
    judgement: Judgement | Report, *, soc: str | None, mode: str | None, hcomm: str | None = None
) -> str:
    """Return what an operator can do; an empty text where there is nothing to do.

    Args:
        judgement: the verdict, or the report that has it.
        soc: name or family of the SoC.
        mode: the expansion mode in force.
        hcomm: its version.
    """
    if judgement.verdict == "healthy":
        return ""
    if judgement.verdict == "mitigated":
        return f"Keep {mode or 'the expansion mode'} until CANN is 9.1.0 or later."
    if judgement.cause == "aicpu_resource_list":
        return _resource_list(judgement, soc=soc, mode=mode)
    if judgement.cause is not None:
        return _BY_CAUSE[judgement.cause]
    said = f" (hcomm {hcomm})" if hcomm else ""
    return f"Remove what kept the measurement from its end, then probe again; until then nothing is known{said}."


def _resource_list(judgement: Judgement | Report, *, soc: str | None, mode: str | None) -> str:
    """The fix is a newer CANN; what helps until then depends on the SoC."""
    if negligible(judgement.impact):
        return (
            "Move to CANN 9.1.0 or later when it suits: at the measured size a load hardly notices."
        )
    default = exposure.default_mode(soc)
    if exposure.mitigates(default) and not exposure.mitigates(mode):
        return f"Unset HCCL_OP_EXPANSION_MODE ({mode}): the default here is {default}. Or move to CANN 9.1.0 or later."
    return f"Move to CANN 9.1.0 or later, or set HCCL_OP_EXPANSION_MODE=AIV; {AIV_WARNING}."
