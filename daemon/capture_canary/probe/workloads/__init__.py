"""What a probe's ranks run."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from capture_canary.probe.messages import Spec

if TYPE_CHECKING:
    from capture_canary.probe.rank import Workload

WORKLOADS = ("acl", "torch", "vllm")
PATIENCE = {"acl": 60.0, "torch": 180.0, "vllm": 900.0}
"""Seconds that a probe may take where nobody says: an arm with torch imports it first, one with vLLM starts it."""


def load_workload(name: str) -> "Callable[[Spec, int], Workload]":
    """Return the workload of that name; imported only here, since some bring large libraries in.

    Raises:
        ValueError: there is none of that name.
        ImportError: it needs a package that this Python does not have.
    """
    if name == "acl":
        from capture_canary.probe.workloads.acl import AclWorkload  # noqa: PLC0415  # see above

        return AclWorkload
    if name == "torch":
        from capture_canary.probe.workloads.torch import TorchWorkload  # noqa: PLC0415  # see above

        return TorchWorkload
    raise ValueError(f"no workload {name!r}; there is {', '.join(WORKLOADS)}")
