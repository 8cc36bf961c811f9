"""A real Docker engine with containers made from the emulated CANN: found, mapped to their containers, judged."""

import shutil
import subprocess
import tarfile
import time
from pathlib import Path

import pytest
from tests.real.conftest import need

from capture_canary import emulate
from capture_canary.stack.helpers import Helpers
from capture_canary.stack.processes import Finder
from capture_canary.stack.servers import Server, about_them, outlook

WORKER = "exec -a VLLM::Worker_TP0 sleep 600"
WIPED = "exec -c -a VLLM::Worker_TP0 sleep 600"
CONTAINERS = {
    # name: CANN, hcomm, variables of the container, what it runs
    "degrading": ("9.0.0", None, {}, WORKER),
    "mitigated": ("8.5.0", None, {"HCCL_OP_EXPANSION_MODE": "AIV"}, WORKER),
    "fixed": ("9.1.0", None, {"HCCL_OP_EXPANSION_MODE": "HOST"}, WORKER),
    "trap": ("9.1.0", "9.0.0", {}, WORKER),
    # `exec -c` leaves what a title leaves: nothing to read in /proc
    "wiped": ("9.0.0", None, {"HCCL_OP_EXPANSION_MODE": "AIV", "HF_TOKEN": "hf_secret"}, WIPED),
}  # fmt: skip


def base_image(folder):
    """A root with bash, sleep and the libraries they and the emulated CANN need."""
    root = folder / "base"
    for name in ("bash", "sleep"):
        program = Path(shutil.which(name) or "").resolve()
        libraries = subprocess.run(
            [need("ldd"), program], capture_output=True, text=True, check=True
        ).stdout
        paths = [word for word in libraries.split() if word.startswith("/")]
        for path in [f"/bin/{name}", *paths]:
            target = root / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(program if path == f"/bin/{name}" else path, target)
    packed = folder / "base.tar"
    with tarfile.open(packed, "w") as tar:
        tar.add(root, ".")
    return packed


def image(run, folder, name, cann, hcomm):
    """An image with an emulated CANN where a real one lies."""
    settings = emulate.parse(f"cann={cann},hcomm={hcomm or cann},soc=a3")
    context = folder / name
    shutil.copytree(emulate.home(settings), context / f"cann-{cann}")
    (context / "Dockerfile").write_text(
        f"FROM canary-base\nCOPY cann-{cann} /usr/local/Ascend/cann-{cann}\nCOPY link /usr/local/Ascend\n"
        f"ENV LD_LIBRARY_PATH=/usr/local/Ascend/cann/lib64 PATH=/bin\n"
    )
    (context / "link").mkdir()
    (context / "link" / "cann").symlink_to(f"cann-{cann}")
    run("build", "-q", "-t", f"canary-{name}", str(context))


@pytest.fixture(scope="module")
def containers(docker, tmp_path_factory):
    """Their ids by name, all running."""
    run, _ = docker
    folder = tmp_path_factory.mktemp("images")
    run("import", str(base_image(folder)), "canary-base")
    ids = {}
    for name, (cann, hcomm, variables, command) in CONTAINERS.items():
        image(run, folder, name, cann, hcomm)
        options = [f"-e{key}={value}" for key, value in variables.items()]
        ids[name] = run(
            "run", "-d", "--network=none", *options, f"canary-{name}", "bash", "-c", command
        )
    return ids


def titled(ids):
    """Wait until each container's process is what it is to be."""
    end = time.monotonic() + 30
    mine: dict[str, Server] = {}
    while time.monotonic() < end:
        found = Finder(inspect=True).look(nodes={}, soc="a3")
        mine = {one.container.id: one for one in found.servers if one.container}
        if set(ids.values()) <= set(mine):
            return {name: mine[number] for name, number in ids.items()}
    raise AssertionError(f"of {ids} only {list(mine)} were found")


@pytest.mark.real
def test_each_container_is_found_mapped_and_judged(containers):
    found = titled(containers)
    assert {one.container.runtime for one in found.values() if one.container} == {"docker"}
    assert {name: one.stack["hcomm"].value for name, one in found.items()} == {
        "degrading": "9.0.0",
        "mitigated": "8.5.0",
        "fixed": "9.1.0",
        "trap": "9.0.0",
        "wiped": "9.0.0",
    }
    assert {
        name: (one.mode.in_force, one.mode.source, outlook(one)[0]) for name, one in found.items()
    } == {
        "degrading": ("AI_CPU", "default", "will degrade"),
        "mitigated": ("AIV", "environment", "mitigated"),
        "fixed": ("HOST", "environment", "not exposed"),
        "trap": ("AI_CPU", "default", "will degrade"),
        "wiped": (None, "unknown", "unknown"),
    }
    assert "hcomm decides" in found["trap"].contradictions[0]
    assert about_them(found["fixed"].stack, (found["degrading"],))[0] is False
    assert "hf_secret" not in repr(found)


@pytest.mark.real
def test_the_engine_tells_what_proc_does_not(docker, containers):
    titled(containers)
    _, socket = docker
    found = Helpers(docker=socket).look(Finder(inspect=True), nodes={}, soc="a3")
    (wiped,) = [
        one for one in found.servers if one.container and one.container.id == containers["wiped"]
    ]
    assert (wiped.mode.in_force, wiped.mode.source) == ("AIV", "container")
    assert outlook(wiped)[0] == "mitigated"
    assert "hf_secret" not in repr(found)


@pytest.mark.real
def test_a_container_that_leads_out_of_its_root_leads_nowhere(docker, containers, tmp_path):
    """Links in a container that point at the host's files, absolute and upward."""
    run, _ = docker
    outside = tmp_path / "version.info"
    outside.write_text("Version=6.6.6\n")
    context = tmp_path / "evil"
    info = context / "evil" / "share" / "info" / "hcomm"
    info.mkdir(parents=True)
    (info / "version.info").symlink_to("../../../../../../../../../../.." + str(outside))
    (context / "Dockerfile").write_text(
        "FROM canary-base\nCOPY evil /usr/local/Ascend/cann\nENV PATH=/bin\n"
    )
    assert containers
    run("build", "-q", "-t", "canary-evil", str(context))
    number = run("run", "-d", "--network=none", "canary-evil", "bash", "-c", WORKER)
    found = titled({"evil": number})["evil"]
    assert "hcomm" not in found.stack
    assert "6.6.6" not in repr(found)
