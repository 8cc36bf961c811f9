"""What a container is given of this node so that CANN in it finds its NPUs: device nodes, driver files, groups."""

import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

_MANAGERS = ("davinci_manager", "devmm_svm", "hisi_hdc", "dvpp_cmdlist")
_MANAGER_FOLDERS = ("uburma", "ummu")
"""Nodes beside /dev/davinciN; the folders are the 950's (mind-cluster component/ascend-common/cdi/devnode.go)."""
_DRIVER = (
    "/usr/local/dcmi",
    "/usr/local/bin/npu-smi",
    "/usr/local/Ascend/driver/lib64",
    "/usr/local/Ascend/driver/version.info",
    "/etc/ascend_install.info",
)
"""Files of the host's driver (mind-cluster build/scripts/base.list, vllm-ascend docs/source/installation.md)."""


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """What a container is given."""

    devices: tuple[str, ...] = ()
    """Paths of device nodes, the same inside."""
    mounts: tuple[str, ...] = ()
    """Paths mounted read-only, the same inside."""
    groups: tuple[int, ...] = ()
    """Groups that own the device nodes: a user of an image is in none of them."""


def share_of(npus: Collection[int], root: Path = Path("/")) -> Share:
    """Return what these NPUs take (N of /dev/davinciN). Of an emulated node, which has no device nodes, nothing."""
    dev = root / "dev"
    if not any((dev / f"davinci{n}").exists() for n in npus):
        return Share()
    nodes = [dev / f"davinci{n}" for n in sorted(npus)]
    nodes += [path for name in _MANAGERS if (path := dev / name).exists()]
    nodes += [path for name in _MANAGER_FOLDERS for path in _nodes_below(dev / name)]
    groups = {path.stat().st_gid for path in nodes if path.exists()} - {0}
    inside = [f"/{path.relative_to(root)}" for path in nodes]
    return Share(
        devices=tuple(inside),
        mounts=tuple(path for path in _DRIVER if (root / path.lstrip("/")).exists()),
        groups=tuple(sorted(groups)),
    )


def _nodes_below(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        for name in sorted(names):
            path = Path(place, name)
            if stat.S_ISCHR(path.lstat().st_mode):
                yield path
