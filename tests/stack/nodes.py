"""Builds the tree of a node from its short description in tests/data/nodes.yaml.

What a description leaves out is as on a usual node. Words in its texts stand for something longer: `{c1}` is the id of
container c1, `{uid}` the uid of its pod, `{uid_}` the same as systemd's driver writes it.
"""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from capture_canary.stack import npu_smi
from capture_canary.stack.node import Node, Places, look_at_node
from capture_canary.stack.npus import Npus, NpusUnknownError
from capture_canary.stack.processes import Finder
from capture_canary.stack.servers import outlook

DATA = Path(__file__).parent.parent / "data"
NODES: list[dict[str, Any]] = yaml.safe_load((DATA / "nodes.yaml").read_text("utf-8"))
UID = "8f4c2d61-0b7e-4a53-9c1d-5e6f708192a3"
CLOCK = 5_000

CGROUPS = {
    "host": "0::/user.slice/user-0.slice/session-3.scope\n",
    "v2-containerd": "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{uid_}.slice/"
    "cri-containerd-{c}.scope\n",
    "v2-containerd-cgroupfs": "0::/kubepods/besteffort/pod{uid}/{c}\n",
    "v2-crio": "0::/kubepods.slice/kubepods-pod{uid_}.slice/crio-{c}.scope\n",
    "v2-docker": "0::/system.slice/docker-{c}.scope\n",
    "v2-podman": "0::/machine.slice/libpod-{c}.scope/container\n",
    "v2-namespaced": "0::/../../kubepods-burstable-pod{uid_}.slice/cri-containerd-{c}.scope\n",
    "v2-nested": "0::/system.slice/docker-{kind}.scope/kubelet/kubepods/pod{uid}/{c}\n",
    "v1-containerd": "".join(
        f"{n}:{name}:/kubepods/burstable/pod{{uid}}/{{c}}\n"
        for n, name in enumerate(["devices", "cpu,cpuacct", "memory", "name=systemd"], 1)
    ),
    "v1-containerd-systemd": "11:memory:/system.slice/containerd.service/"
    "kubepods-burstable-pod{uid_}.slice:cri-containerd:{c}\n1:name=systemd:/\n0::/\n",
    "v1-docker": "9:pids:/docker/{c}\n2:memory:/docker/{c}\n0::/system.slice/containerd.service\n",
    "v1-docker-kubernetes": "4:memory:/kubepods.slice/kubepods-pod{uid_}.slice/docker-{c}.scope\n",
    "v1-crio": "7:cpuset:/kubepods.slice/kubepods-pod{uid_}.slice/crio-{c}.scope\n",
}
KINDS = {
    "worker": ["VLLM::Worker_TP0"],
    "engine": ["VLLM::EngineCore_DP0"],
    "serve": ["/usr/local/python3.11.13/bin/python3.11", "/usr/local/bin/vllm", "serve", "/models/Qwen3-32B"],
    "api_server": ["python3", "-u", "-m", "vllm.entrypoints.openai.api_server", "--model", "/models/Qwen3-32B"],
    "mindie": ["./bin/mindieservice_daemon"],
    "mindie_backend": ["/usr/local/Ascend/mindie/latest/mindie-service/bin/mindie_llm_backend_connector"],
    "sglang": ["python3", "-m", "sglang.launch_server", "--model-path", "/models/Qwen3-32B"],
    "sglang_scheduler": ["sglang::scheduler_TP0"],
    "training": ["python3", "train.py"],
    "shell": ["bash", "-c", "vllm serve /models/x"],
    "grep": ["grep", "VLLM::Worker"],
}  # fmt: skip


def container_id(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def put(path: Path, text: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)


def lay_cann(root: Path, about: dict[str, Any]) -> None:
    """A CANN as its version lays it: until 8.3 below ascend-toolkit, with a link `latest`, from 8.5 on in cann."""
    version = about["toolkit"]
    ascend = root / "usr/local/Ascend"
    old = about.get("layout", "new") == "old"
    home = root / about["home"].lstrip("/") if "home" in about else None
    home = home or (ascend / "ascend-toolkit" / version if old else ascend / f"cann-{version}")
    if "home" not in about:
        link = ascend / ("ascend-toolkit/latest" if old else "cann")
        link.parent.mkdir(parents=True, exist_ok=True)
        target = f"/usr/local/Ascend/cann-{version}" if about.get("absolute") else home.name
        link.symlink_to(target)
    arch = about.get("arch", "aarch64")
    if not about.get("no_toolkit"):
        put(
            home / f"{arch}-linux/ascend_toolkit_install.info",
            f"package_name=Ascend-cann-toolkit\nversion={version}\ninnerversion=V100R001C23SPC002B210\n"
            f"compatible_version=[V100R001C15],[V100R001C17]\narch={arch}\nos=linux\n",
        )
    for package in ("hcomm", "hccl", "runtime"):
        said = about.get(package, None if old and package != "runtime" else version)
        if said is None:
            continue
        text = f"Version={said}\nversion_dir=cann\ntimestamp=20260728_101112131\n"
        put(home / ("" if old else "share/info") / package / "version.info", text)
    if "second_hcomm" in about:
        put(home / "hcomm/version.info", f"Version={about['second_hcomm']}\n")


def lay_root(root: Path, about: dict[str, Any]) -> None:
    """The file system of a container or the host."""
    root.mkdir(parents=True, exist_ok=True)
    if "cann" in about:
        lay_cann(root, about["cann"])
    if "driver" in about:
        put(root / "usr/local/Ascend/driver/version.info", f"Version={about['driver']}\n")
    site = about.get("site", "/usr/local/python3.11.13/lib/python3.11/site-packages").lstrip("/")
    for name, version in about.get("packages", {}).items():
        put(root / site / f"{name}-{version}.dist-info/METADATA", f"Name: {name}\n")
    for path, text in about.get("files", {}).items():
        put(root / path.lstrip("/"), text)
    for path, target in about.get("links", {}).items():
        link = root / path.lstrip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
    for path in about.get("fifos", []):
        (root / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(root / path.lstrip("/"))


def lay_process(proc: Path, roots: Path, one: dict[str, Any]) -> None:
    """One /proc/PID."""
    pid, name = one["pid"], one.get("in", "host")
    folder = proc / str(pid)
    argv = KINDS[one["is"]] if "is" in one else one["argv"]
    put(folder / "cmdline", "".join(f"{a}\0" for a in [*argv, *one.get("options", [])]))
    parent = one.get("ppid", 1)
    fields = ["S", str(parent), *["0"] * 17, str(CLOCK + pid), "0", "0"]
    put(folder / "stat", f"{pid} (a ) b) {' '.join(fields)}\n")
    put(folder / "status", f"Name:\tx\nNSpid:\t{pid}\t{one.get('inner_pid', 7)}\n")
    cgroup: str = CGROUPS.get(one.get("cgroup", "host")) or one.get("cgroup", "")
    names = {
        "c": container_id(name),
        "kind": container_id("kind"),
        "uid": UID,
        "uid_": UID.replace("-", "_"),
    }
    put(folder / "cgroup", cgroup.format(**names))
    environ = one.get("environ", {})
    if environ == "wiped":
        put(folder / "environ", b"\0" * 900)
    elif environ == "denied":
        (folder / "environ").mkdir()  # EISDIR stands for EACCES, which root never gets
    else:
        pairs = {"PATH": "/usr/bin", "HF_TOKEN": "hf_secret", **environ}
        put(folder / "environ", "".join(f"{k}={v}\0" for k, v in pairs.items()))
    if one.get("root", True):
        (folder / "root").symlink_to(roots / name)
    put(folder / "maps", "".join(
        f"7f00{n:08x}-7f01{n:08x} r-xp 00000000 00:35 {n}  {path}\n" for n, path in enumerate(one.get("maps", []))
    ))  # fmt: skip
    if argv or "exe" in one:  # a kernel thread has none
        (folder / "exe").symlink_to(one.get("exe", "/usr/local/python3.11.13/bin/python3.11"))
    fds = folder / "fd"
    fds.mkdir()
    for number, target in enumerate(
        ["/dev/null", "pipe:[123]", *(f"/dev/davinci{n}" for n in one.get("npus", []))]
    ):
        (fds / str(number)).symlink_to(target)


def build(about: dict[str, Any], folder: Path) -> Places:
    """Lay the node's trees out."""
    roots, proc = folder / "roots", folder / "proc"
    for name, container in {"host": {}, **about.get("containers", {})}.items():
        lay_root(roots / name, container or {})
    lay_root(folder / "own", about.get("own") or {})
    (folder / "dev").mkdir()
    processes: Iterable[dict[str, Any]] = about.get("processes", [])
    init = {"pid": 1, "argv": ["/sbin/init"], "in": "host"}
    for one in [init, *processes]:
        lay_process(proc, roots, one)
    return Places(root=folder / "own", proc=proc, dev=folder / "dev")


def npus_of(about: dict[str, Any]) -> Npus:
    name = about.get("npu_smi")
    if name is None:
        raise NpusUnknownError("npu-smi: no such command")
    return npu_smi.parse((DATA / "npu-smi" / name).read_text("utf-8"))


def look(about: dict[str, Any], folder: Path, *, inspect: bool = True) -> Node:
    places = build(about, folder)
    return look_at_node(
        about.get("environ", {}),
        lambda: npus_of(about),
        Finder(places.proc, inspect=inspect),
        places=places,
    )


def answer(node: Node) -> dict[str, Any]:
    """What is compared, in the words of a description."""
    servers = {
        one.pid: {
            "is": f"{one.engine} {one.role}",
            "npus": list(one.npus),
            "container": one.container and [one.container.runtime, one.container.id],
            "pod": one.pod and [one.pod.uid, one.pod.namespace, one.pod.name],
            "mode": [one.mode.in_force, one.mode.source],
            "hcomm": one.stack["hcomm"].value if "hcomm" in one.stack else None,
            "outlook": outlook(one)[0],
            "doubts": " | ".join(one.mode.doubts),
            "contradictions": " | ".join(one.contradictions),
            "unseen": " | ".join(one.unseen),
            "packages": {
                name: one.stack[name].value
                for name in ("torch_npu", "vllm", "vllm_ascend", "cann")
                if name in one.stack
            },
        }
        for one in node.servers.servers
    }
    return {
        "soc": node.soc,
        "exposed": node.exposed,
        "about": node.about_servers,
        "contradictions": " | ".join(node.contradictions),
        "unseen": " | ".join(node.servers.unseen),
        "stack": {name: fact.value for name, fact in node.stack.items()},
        "servers": servers,
    }
