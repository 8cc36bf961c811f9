"""What a probe's ranks run."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from capture_canary.probe.messages import Spec

if TYPE_CHECKING:
    from capture_canary.probe.rank import Workload

WORKLOADS = ("acl",)


def load_workload(name: str) -> "Callable[[Spec, int], Workload]":
    """Return the workload of that name; imported only here, since some bring large libraries in.

    Raises:
        ValueError: there is none of that name.
    """
    if name == "acl":
        from capture_canary.probe.workloads.acl import AclWorkload  # noqa: PLC0415  # see above

        return AclWorkload
    raise ValueError(f"no workload {name!r}; there is {', '.join(WORKLOADS)}")
