"""Which `cudagraph_mode` a vllm-ascend captures in; where nobody says it is to be the one of the largest graphs.

Source: `vllm_ascend/platform.py` at each tag. A mode that a version does not capture in it makes NONE or another.
"""

from capture_canary.stack import versions

FULL, DECODE, PIECEWISE = "FULL", "FULL_DECODE_ONLY", "PIECEWISE"
MODES = (FULL, DECODE, PIECEWISE)
"""Best first: one graph of the whole model a size; the same for decoding alone; a graph between any two attentions."""

_HAS_DECODE = versions.Version(0, 11, 0, ())
_HAS_FULL = versions.Version(0, 12, 0, ())


class ModeError(RuntimeError):
    """This vllm-ascend does not capture in the mode that was asked for."""


def of(version: str) -> tuple[str, ...]:
    """Return the modes of a vllm-ascend, best first; all of them where its version has no place in the order."""
    # vllm-ascend's post-releases have the modes of their release.
    release = version.partition(".post")[0].partition("+")[0]
    if versions.at_least(release, _HAS_FULL) is not False:
        return MODES
    return MODES[1:] if versions.at_least(release, _HAS_DECODE) else MODES[2:]


def chosen(wanted: str | None, version: str) -> str:
    """Return the mode to capture in.

    Raises:
        ModeError: the version has no such mode.
    """
    own = of(version)
    if wanted is not None and wanted not in own:
        raise ModeError(
            f"vllm-ascend {version} does not capture in cudagraph_mode {wanted}, only in {', '.join(own)}"
        )
    return wanted or own[0]
