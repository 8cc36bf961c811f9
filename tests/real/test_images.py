"""Images by a real Docker engine: stand-ins of four CANNs, the unmodified Dockerfile on each, held to the matrix."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import pytest
from tests.real.conftest import need
from tests.real.needing import environment

from capture_canary import __version__
from capture_canary.images import matrix as images_matrix
from capture_canary.images.job import STAGE, UNFINISHED

pytestmark = pytest.mark.real
CANNS = ("8.5.0", "9.0.0", "9.1.0-beta.1", "9.1.0")
CELLS = {cann: f"emulated-{cann}-a3-debian12" for cann in CANNS}
TAGS = {cann: f"capture-canary:{__version__}-{cell}" for cann, cell in CELLS.items()}
MOST_ADDED = 40e6
CACHE = Path("~/.cache/capture-canary-ci/images").expanduser()
HARDENED = ("--network=none", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges")
SOURCE = Path(__file__).parents[2]
DEBIAN = "localhost/capture-canary-emulated/debian:bookworm"


class Images:
    """`capture-canary images` with this engine."""

    def __init__(self, socket):
        self.environ = {**os.environ, "DOCKER_HOST": f"unix://{socket}"}

    def words(self, command, *words):
        kept = ["--cache", CACHE] if command in {"build", "standins", "verify"} else []
        where = ["--source", SOURCE] if command in {"build", "standins"} else []
        return [
            sys.executable,
            "-m",
            "capture_canary.cli",
            "images",
            command,
            *words,
            *kept,
            *where,
        ]

    def __call__(self, *words):
        done = subprocess.run(
            self.words(*words),
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=1500,
        )
        return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def images(docker):
    """The command, with the four images built."""
    need("debootstrap")
    command = Images(docker[1])
    for words in (("standins",), ("build", "--network=host")):
        code, _, errors = command(*words, *CELLS.values())
        assert code == 0, errors[-3000:]
    return command


def in_image(socket, options, tag, *argv):
    """Run a command in an image to its end, however that is."""
    return subprocess.run(
        [need("docker"), "-H", f"unix://{socket}", "run", "--rm", *options, tag, *argv],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def left_over(run):
    """Containers and nameless images of builds."""
    found = [
        f"container {one}"
        for stage in UNFINISHED
        for one in run("ps", "-aq", "--filter", f"label={STAGE}={stage}").split()
    ]
    dangling = run("images", "-q", "--filter", "dangling=true", "--filter", f"label={STAGE}")
    return [*found, *dangling.split()]


def test_each_is_what_the_matrix_says(docker, images):
    code, output, errors = images("verify", *CELLS.values(), "--json")
    assert code == 0, errors
    found = {
        one["cell"]: {check["name"]: check["said"] for check in one["checks"]}
        for one in json.loads(output)
    }
    assert set(found) == set(CELLS.values())
    for cann, cell in CELLS.items():
        verdict = "healthy" if cann == "9.1.0" else "degraded"
        assert found[cell]["probe"].startswith(f"emulated: {verdict}"), cell
        assert found[cell]["tracer"] == "loads"
        assert found[cell]["kind"] == "its CANN is emulated"
    assert left_over(docker[0]) == []


def test_what_is_added_is_small_and_has_no_compiler_cache_or_pip(docker, images):
    run, _ = docker
    code, output, errors = images("size", *CELLS.values(), "--json")
    assert code == 0, errors
    sizes = {one["image"]: one["added_bytes"] for one in json.loads(output)}
    assert set(sizes) == set(TAGS.values())
    assert max(sizes.values()) < MOST_ADDED
    ours = run(
        "run",
        "--rm",
        "--network=none",
        "--user=0",
        "--entrypoint=find",
        TAGS["9.1.0"],
        "/opt/capture-canary",
        "/root",
        "/tmp",  # noqa: S108  # the image's
    )
    names = {Path(line).name for line in ours.splitlines()}
    assert "capture_canary" in names
    assert not names & {"pip", "cmake", "ninja", "gcc", ".cache", "requirements.txt", "wheels"}


def test_compare_shows_what_decides_an_upgrade(images, tmp_path):
    """Those before the fix degrade and AIV mitigates them; the fixed one is flat in both modes."""
    settings = [f"--set={name}={tmp_path / name}" for name in ("state_dir", "lock_file")]
    words = ("--json", "--emulate=cann=9.1.0,soc=a3", "--html", str(tmp_path / "report.html"))
    code, output, errors = images("compare", *CELLS.values(), *words, *settings)
    assert (code, errors) == (1, "")
    found = {
        (one["labels"]["cann"], row["arm"]): (row["verdict"], row["copies"]["estimate"], row["matches_law"])
        for one in json.loads(output)["images"]
        for row in one["rows"]
    }  # fmt: skip
    for cann in CANNS[:3]:
        verdict, copies, law = found[cann, "as_configured"]
        assert (verdict, copies > 0, law) == ("degraded", True, True)
        assert found[cann, "aiv"] == ("mitigated", 0, None)
    assert [found["9.1.0", arm] for arm in ("as_configured", "aiv")] == [("healthy", 0, None)] * 2
    assert all(tag in (tmp_path / "report.html").read_text() for tag in TAGS.values())


def test_what_is_there_is_not_built_again(images):
    code, _, errors = images("build", "--network=host", *CELLS.values())
    assert code == 0
    assert "0 built, 5 there already, 0 failed" in errors


@pytest.mark.usefixtures("images")
def test_the_daemon_runs_as_nobody_with_nothing_writable(docker):
    run, _ = docker
    number = run("run", "-d", *HARDENED, TAGS["8.5.0"])
    end = time.monotonic() + 60
    while run("exec", number, "capture-canary", "health", check=False) is None:
        assert time.monotonic() < end, run("logs", number)
        time.sleep(0.1)
    assert run("exec", number, "id", "-u") == "65532"
    page = run(
        "exec",
        number,
        "/opt/capture-canary/bin/python",
        "-c",
        "import urllib.request as r; print(r.urlopen('http://127.0.0.1:9877/metrics').read().decode())",
    )
    assert re.search(
        r'^capture_canary_build_info\{emulated="true",version="[^"]+"\} 1', page, re.MULTILINE
    )
    run("exec", number, "sh", "-c", "sleep 0.1 & exec true")  # an orphan of process 1
    end = time.monotonic() + 60
    while "sleep" in run("exec", number, "sh", "-c", "cat /proc/[0-9]*/comm"):
        assert time.monotonic() < end, "an orphan was not reaped"
        time.sleep(0.1)
    run("stop", "-t", "30", number)
    assert run("inspect", "-f", "{{.State.ExitCode}}", number) == "0"
    run("rm", number)


@pytest.mark.usefixtures("images")
@pytest.mark.parametrize("options", [("--network=none",), HARDENED], ids=["plain", "hardened"])
def test_a_probe_runs_on_a_laptop(docker, options):
    done = in_image(docker[1], options, TAGS["9.1.0"], "probe", "--emulate", "cann=8.5.0,soc=a3")
    assert done.returncode == 1, done.stderr
    assert "DEGRADED (aicpu_resource_list)" in done.stdout
    assert "EMULATED" in done.stdout


@pytest.mark.usefixtures("images")
def test_a_stand_ins_cann_is_found_like_a_nodes_and_never_passes_for_one(docker):
    found = json.loads(in_image(docker[1], HARDENED, TAGS["9.0.0"], "probe", "--json").stdout)
    assert found["emulated"] is True
    assert found["stack"]["cann"]["source"].startswith("/usr/local/Ascend/cann-9.0.0/")
    words = ("-u", "CAPTURE_CANARY_EMULATE", "capture-canary", "probe")
    unasked = in_image(docker[1], ("--network=none", "--entrypoint=env"), TAGS["9.0.0"], *words)
    assert unasked.returncode == 2
    assert "is an emulated one" in " ".join(unasked.stderr.split())


def test_an_image_that_contradicts_its_label_is_found(docker, images, tmp_path):
    run, _ = docker
    wrong = TAGS["9.1.0"].replace("capture-canary:", "wrong:")
    (tmp_path / "Dockerfile").write_text(
        f"FROM {TAGS['8.5.0']}\nLABEL io.capture-canary.cann=9.1.0\n"
    )
    run("build", "-q", "-t", wrong, str(tmp_path))
    code, output, _ = images("verify", CELLS["9.1.0"], "--repository", "wrong", "--json")
    assert code == 1
    (found,) = json.loads(output)
    failed = {check["name"]: check["said"] for check in found["checks"] if not check["ok"]}
    assert "labels" not in failed
    assert "8.5.0" in failed["cann"]
    assert "and not 9.1.0" in failed["cann"]
    run("rmi", wrong)


MATRIX = f"""
schema = 1
builder = "{DEBIAN}"
[socs.a3]
family = "a3"
suffix = ""
[systems.none]
suffix = ""
[[lines]]
cann = "8.8.1"
base = "127.0.0.1:1/nowhere:{{soc}}-{{os}}"
python = "3.11"
[[lines]]
cann = "8.8.2"
base = "localhost/broken:{{soc}}-{{os}}"
python = "3.11"
[[lines]]
cann = "8.5.0"
base = "localhost/capture-canary-emulated/cann:8.5.0-{{soc}}-debian12-py3.11{{os}}"
python = "3.11"
[emulated]
system = "debian12"
python = "3.11"
builder = "{DEBIAN}"
base = "localhost/capture-canary-emulated/cann:{{cann}}-{{soc}}-{{os}}-py3.11"
lines = ["8.5.0", "8.8.1"]
socs = ["a3"]
vllm-base = "localhost/none:{{vllm-ascend}}-{{soc}}-{{os}}"
vllm-line = "8.5.0"
vllm = {{ vllm-ascend = "0", vllm = "0", torch-npu = "0", socs = ["a3"] }}
"""


def test_one_that_fails_stops_no_other_and_is_told(docker, images, tmp_path):
    """No such base, a base on which a step fails, a stand-in that is not made; and one that is well."""
    run, _ = docker
    matrix = tmp_path / "matrix.toml"
    matrix.write_text(MATRIX)
    (tmp_path / "Dockerfile").write_text(
        f"FROM {DEBIAN}\nRUN rm -rf /usr/lib/python3/dist-packages/pip\n"
    )
    run("build", "-q", "-t", "localhost/broken:a3-none", str(tmp_path))
    cells = ["8.8.1-a3-none", "8.8.2-a3-none", "emulated-8.8.1-a3-debian12", CELLS["8.5.0"]]
    code, _, errors = images(
        "build", *cells, "--matrix", matrix, "--repository", "failing", "--network=host"
    )
    assert code == 1
    assert "1 built, 1 there already, 3 failed" in errors
    assert "127.0.0.1:1/nowhere:a3-none can't be pulled" in errors
    assert "8.8.2-a3-none: FAILED: " in errors
    assert "is made here, and is not there" in errors
    assert run("images", "-q", "failing").split()
    assert left_over(run) == []
    run("rmi", f"failing:{__version__}-{CELLS['8.5.0']}", "localhost/broken:a3-none")


OTHER_PYTHON = f"""
schema = 1
builder = "{DEBIAN}"
lines = [{{ cann = "9.1.0", unavailable = "here" }}]
[socs.a3]
family = "a3"
suffix = ""
[systems.none]
suffix = ""
[emulated]
system = "none"
python = "PYTHON"
builder = "{DEBIAN}"
base = "localhost/pythonPYTHON:{{cann}}-{{soc}}-{{os}}"
lines = ["9.1.0"]
socs = ["a3"]
vllm-base = "localhost/none:{{vllm-ascend}}-{{soc}}-{{os}}"
vllm-line = "9.1.0"
vllm = {{ vllm-ascend = "0", vllm = "0", torch-npu = "0", socs = ["a3"] }}
"""


def a_python(version):
    """The folder of a Python of that version, with its pip, that this machine has beside its own."""
    for folder in sorted(Path("~/.pyenv/versions").expanduser().glob(f"{version}.*")):
        if (folder / "bin" / f"python{version}").exists():
            return folder
    return pytest.skip(f"no Python {version} under ~/.pyenv/versions")


def with_python(docker, version, folder, base, tag):
    """Make an image of `base` in which that Python comes first, as it does in Ascend's images."""
    home = f"/usr/local/python{version}"
    dockerfile = (
        f"FROM {base}\nCOPY python {home}\n"
        f"RUN echo {home}/lib >/etc/ld.so.conf.d/python.conf && ldconfig\n"
        f"ENV PATH={home}/bin:${{PATH}} PIP_CERT=/etc/ssl/certs/ca-certificates.crt\n"
    )
    left_out = {"test", "tests", "__pycache__", "idlelib", "include", "share"}
    with tempfile.NamedTemporaryFile(suffix=".tar") as context:
        with tarfile.open(context.name, "w") as tar:
            about = tarfile.TarInfo("Dockerfile")
            about.size = len(dockerfile)
            tar.addfile(about, io.BytesIO(dockerfile.encode()))
            tar.add(
                folder,
                "python",
                filter=lambda one: (
                    None if Path(one.name).name in left_out or one.name.endswith(".a") else one
                ),
            )
        context.seek(0)
        command = [
            need("docker"),
            "-H",
            f"unix://{docker[1]}",
            "build",
            "-q",
            "--network=none",
            "-t",
            tag,
            "-",
        ]
        subprocess.run(command, stdin=context, check=True, timeout=600)


@pytest.mark.parametrize("version", ["3.12", pytest.param("3.10", marks=pytest.mark.long)])
def test_an_image_s_python_may_be_another_one(docker, images, tmp_path, version):
    """The one wheel, which is built by 3.11 here, and the locked packages; verified as any other."""
    matrix, cell = tmp_path / "matrix.toml", "emulated-9.1.0-a3-none"
    matrix.write_text(OTHER_PYTHON.replace("PYTHON", version))
    base = "localhost/capture-canary-emulated/cann:9.1.0-a3-debian12-py3.11"
    with_python(
        docker, version, a_python(version), base, f"localhost/python{version}:9.1.0-a3-none"
    )
    words = (cell, "--matrix", matrix, "--repository", f"with-python{version}")
    code, _, errors = images("build", *words, "--network=host")
    assert code == 0, errors[-3000:]
    code, output, errors = images("verify", *words, "--json")
    assert code == 0, output + errors
    (found,) = json.loads(output)
    said = {check["name"]: check["said"] for check in found["checks"]}
    assert said["python"].startswith(f"Python {version}.")
    assert said["probe"].startswith("emulated: healthy")


@pytest.mark.long
def test_a_stand_in_for_vllm_ascend_s_image_holds_what_the_matrix_says(images):
    """3 GB: its torch-npu, vLLM and vllm-ascend are those of the environment, seen by our doctor in the image."""
    environment("vllm-0.23.0")
    cell = "emulated-9.1.0-a3-debian12-vllm"
    for words in (("standins", "--flavour", "vllm", cell), ("build", cell, "--network=host")):
        code, _, errors = images(*words)
        assert code == 0, errors[-3000:]
    code, output, errors = images("verify", cell, "--json")
    assert code == 0, output + errors
    (found,) = json.loads(output)
    said = {check["name"]: check["said"] for check in found["checks"]}
    (wanted,) = (one for one in images_matrix.load() if one.name == cell)
    assert said["vllm"] == wanted.vllm
    assert said["vllm_ascend"] == wanted.vllm_ascend
    assert said["torch_npu"] == wanted.torch_npu
    code, output, errors = images("size", cell, "--json")
    assert code == 0, errors
    assert json.loads(output)[0]["added_bytes"] < MOST_ADDED


def test_ctrl_c_leaves_nothing(docker, images):
    run, _ = docker
    words = ("build", *CELLS.values(), "--force", "--repository=stopped", "--network=host")
    with subprocess.Popen(
        images.words(*words), env=images.environ, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr
        for line in process.stderr:
            if "emulated" in line and "RUN unset" in line:
                break
        bystander = run("run", "-d", "--network=none", TAGS["8.5.0"])
        process.send_signal(signal.SIGINT)
        process.stderr.read()
        assert process.wait(120) == 130
    assert left_over(run) == []
    assert run("images", "-q", "stopped") == ""
    children = subprocess.run(
        [need("ps"), "-eo", "args"], capture_output=True, text=True, check=True
    ).stdout
    assert "images.build_child" not in children
    assert run("inspect", "-f", "{{.State.Running}}", bystander) == "true"
    run("rm", "-f", bystander)
