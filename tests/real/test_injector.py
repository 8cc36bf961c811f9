"""The injector, built and run by a real engine: a server's own image and Python run what it copies; for arm64, too."""

import hashlib
import json
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from tests.real.conftest import need
from tests.tracer.building import Build, run_traced
from tests.tracer.test_lookups import check_plain

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
HERE = ROOT / "images" / "injector"
SOURCES = (
    "pyproject.toml",
    "daemon",
    "requirements",
    "images/requirements.txt",
    "images/injector",
    "scripts/steps/wheels.py",
    "scripts/steps/running.py",
)
BASE = "docker.io/library/busybox:1.37.0-musl"
INJECTOR, SERVER = "canary-injector", "canary-server"
HOME = "/opt/capture-canary"
SHUT_IN = ("--rm", "--read-only", "--cap-drop=ALL", "--network=none", "--security-opt=no-new-privileges")  # fmt: skip


def released():
    """What `scripts/release build` makes, for both architectures; kept while nothing of it changes."""
    command = [need("git"), "-C", ROOT, "ls-files", "-z", *SOURCES]
    listed = subprocess.run(command, check=True, capture_output=True).stdout
    names = [os.fsdecode(name) for name in listed.split(b"\0") if name]
    sources = b"".join((ROOT / name).read_bytes() for name in names)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "capture-canary-ci")
    kept = cache / "release" / hashlib.sha256(sources).hexdigest()[:16]
    if not (kept / "SHA256SUMS").exists():
        need("aarch64-linux-gnu-gcc")
        shutil.rmtree(kept.parent, ignore_errors=True)
        command = [sys.executable, ROOT / "scripts" / "release", "build", "--out", kept]
        subprocess.run(command, check=True, timeout=900)
    return kept


def payload(folder, name):
    """A build context with the payload of a release."""
    archive = released() / f"payload-{name}.tar.gz"
    subprocess.run([need("tar"), "-xf", archive, "-C", folder], check=True)
    for file in ("Dockerfile", "inject"):
        shutil.copy2(HERE / file, folder / file)
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The build context for this machine."""
    return payload(
        tmp_path_factory.mktemp("here"), {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    )


@pytest.fixture(scope="module")
def engine(docker, made, tmp_path_factory):
    """The engine with both images; what runs `docker`."""
    run, _ = docker
    folder = tmp_path_factory.mktemp("bases")
    run("import", str(busybox(folder)), BASE)
    run("build", "-q", f"--build-arg=BASE={BASE}", "-t", INJECTOR, str(made))
    run("import", "-c", "USER 1000:1000", str(server(folder)), SERVER)
    return run


def busybox(folder):
    """Debian's busybox in place of the published image."""
    packed = folder / "busybox.tar"
    names = subprocess.run(
        [need("busybox"), "--list"], check=True, capture_output=True, text=True
    ).stdout.split()
    with tarfile.open(packed, "w") as tar:
        tar.add(need("busybox"), "bin/busybox")
        for name in names:
            if name != "busybox":
                link = tarfile.TarInfo(f"bin/{name}")
                link.type, link.linkname = tarfile.SYMTYPE, "busybox"
                tar.addfile(link)
        scratch = tarfile.TarInfo("tmp")
        scratch.type, scratch.mode = tarfile.DIRTYPE, 0o1777
        tar.addfile(scratch)
    return packed


def server(folder):
    """An image with this machine's Python and a shell, and nothing of ours."""
    python = Path(shutil.which("python3", path="/usr/bin") or pytest.skip("no system Python"))
    root = Path(f"/usr/lib/{python.resolve().name}")
    binaries = [python.resolve(), *root.glob("lib-dynload/*.so")]
    said = subprocess.run(
        [need("ldd"), *binaries], check=True, capture_output=True, text=True
    ).stdout
    with tarfile.open(folder / "server.tar", "w") as tar:
        paths = {word for word in said.split() if re.match(r"/[^:]*$", word)}
        libc = next(Path(path).parent for path in paths if path.endswith("/libc.so.6"))
        # Empty shells that every system's libc brings, and which wheels name.
        paths |= {str(libc / f"lib{name}") for name in ("pthread.so.0", "dl.so.2", "rt.so.1")}
        for path in sorted(paths):
            tar.add(Path(path).resolve(), path)
        for name in ("sh", "env", "readlink", "cat"):
            tar.add(need("busybox"), f"bin/{name}")
        tar.add(python.resolve(), "usr/bin/python3")
        tar.add(root, str(root), filter=lambda one: None if "/test/" in one.name else one)
    return folder / "server.tar"


@pytest.fixture
def volume(engine):
    """A fresh volume as an emptyDir is: anyone may write."""
    name = engine("volume", "create")
    engine("run", "--rm", "-v", f"{name}:{HOME}", "--user=0", "--entrypoint=chmod", INJECTOR, "777", HOME)  # fmt: skip
    yield name
    engine("volume", "rm", "-f", name)


def inject(engine, volume, *words, check=True):
    return engine("run", *SHUT_IN, "-v", f"{volume}:{HOME}", INJECTOR, *words, check=check)


def shell(engine, volume, script):
    """As root, with busybox, to look at what is in the volume or to harm it."""
    words = ("-v", f"{volume}:{HOME}", "--user=0", "--entrypoint=sh", INJECTOR, "-c", script)
    return engine("run", "--rm", *words)


def serve(engine, volume, script):
    """In the server's own image, which gets the volume read-only."""
    mounts = ("-v", f"{volume}:{HOME}:ro", "--tmpfs=/tmp:exec")
    return engine("run", *SHUT_IN, *mounts, SERVER, "/bin/sh", "-c", script)


def test_the_image_is_small_and_what_it_says(engine):
    about = json.loads(engine("image", "inspect", INJECTOR))[0]
    base = json.loads(engine("image", "inspect", BASE))[0]
    assert about["Size"] - base["Size"] < 60e6
    assert about["Config"]["User"] == "65532:65532"
    assert about["Config"]["Labels"]["org.opencontainers.image.title"] == "Capture Canary injector"


def test_a_server_s_own_image_probes_and_traces(engine, volume):
    inject(engine, volume)
    command = f"{HOME}/bin/capture-canary"
    said = serve(engine, volume, f"{command} probe --emulate cann=9.0.0,soc=a3 --json || echo $?")
    report, _, code = said.rpartition("\n")
    assert (json.loads(report)["verdict"], code) == ("degraded", "1")
    said = serve(engine, volume, f"LD_PRELOAD=/lib/other.so {command} exec -- /bin/env 2>/dev/null")  # fmt: skip
    variables = dict(line.split("=", 1) for line in said.splitlines())
    tracer, other = variables["LD_PRELOAD"].split(":")
    assert (other, Path(tracer).name) == ("/lib/other.so", "libcapturetrace.so")
    assert "PYTHONPATH" not in variables


def test_again_changes_nothing(engine, volume):
    first = inject(engine, volume)
    before = shell(engine, volume, f"ls -laR {HOME}")
    assert inject(engine, volume) == f"{first} is there"
    assert shell(engine, volume, f"ls -laR {HOME}") == before


def test_an_older_version_stays_and_half_a_copy_goes(engine, volume):
    old = f"{HOME}/0.0.9-abc"
    shell(engine, volume, f"mkdir -p {old} {HOME}/.copy.XX/fresh && echo tracer > {old}/t")
    shell(engine, volume, f"ln -s 0.0.9-abc {HOME}/current")
    shell(engine, volume, f"touch -d '2020-01-01 00:00' {HOME}/.copy.XX; chmod -R 777 {HOME}")
    now = inject(engine, volume).rpartition("/")[2]
    left = shell(engine, volume, f"cd {HOME}; cat 0.0.9-abc/t; readlink current; ls -A").split()
    assert left == ["tracer", now, *sorted([now, "0.0.9-abc", "bin", "current"])]


def test_a_damaged_copy_is_made_again(engine, volume):
    version = inject(engine, volume).rpartition("/")[2]
    tracer = f"{HOME}/{version}/lib/capture_canary/_native/libcapturetrace.so"
    shell(engine, volume, f": > {tracer}")
    assert inject(engine, volume).endswith(version)
    assert int(shell(engine, volume, f"wc -c < {tracer}")) > 10_000
    assert "is there" in inject(engine, volume)


def test_two_at_once_end_with_one_whole_copy(engine, volume):
    start = ("run", "-d", "-v", f"{volume}:{HOME}", INJECTOR)
    both = [engine(*start), engine(*start)]
    codes = [engine("wait", number) for number in both]
    engine("rm", *both)
    assert codes == ["0", "0"]
    assert "is there" in inject(engine, volume)


@pytest.mark.parametrize(
    ("mount", "words", "said"),
    [
        ("--tmpfs=/full:size=3m,mode=777", ["/full"], "is the volume full? "),
        ("--tmpfs=/mine:mode=700", ["/mine"], "user 65532 may not write there"),
        ("--tmpfs=/x", ["/y/z"], "/y/z: cannot be made"),
        ("--tmpfs=/x", ["x"], "x: name the folder from its root on"),
    ],
)
def test_what_cannot_be_is_said(docker, engine, mount, words, said):
    _, socket = docker
    command = [need("docker"), "-H", f"unix://{socket}", "run", *SHUT_IN, mount, INJECTOR, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert engine
    assert (done.returncode, said in done.stderr) == (1, True), done.stderr


@pytest.mark.parametrize("named", ["/bin/sh", "/nowhere"])
def test_a_python_that_cannot_run_it_is_said(engine, volume, named):
    inject(engine, volume)
    script = f"CAPTURE_CANARY_PYTHON={named} {HOME}/bin/capture-canary --version 2>&1 || echo $?"
    pythons = " ".join(f"cpython-3{minor}" for minor in range(10, 15))
    refusal = f"capture-canary: CAPTURE_CANARY_PYTHON={named} is none of: {pythons}\n2"
    assert serve(engine, volume, script) == refusal
    script = f"PATH=/nowhere; rm() {{ :; }}; exec {HOME}/bin/capture-canary --version"
    assert serve(engine, volume, script) == "capture-canary 0.1.0"


def modules(context):
    """The C parts of the payload by name, with the machine that each is for."""
    found = {}
    for path in sorted((context / "payload").rglob("*")):
        head = path.read_bytes()[:20] if path.is_file() else b""
        if head[:4] == b"\x7fELF":
            found[str(path.relative_to(context / "payload"))] = struct.unpack_from("<H", head, 18)[
                0
            ]
    return found


@pytest.mark.parametrize("which", ["here", "aarch64"])
def test_every_python_has_its_modules(request, which):
    context = request.getfixturevalue("made" if which == "here" else "foreign")
    names = [Path(name).name for name in modules(context)]
    for minor in range(10, 15):
        assert sum(name.startswith(f"_core.cpython-3{minor}-") for name in names) == 1
    assert "libcapturetrace.so" in names


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """The build context for arm64, made on any machine."""
    return payload(tmp_path_factory.mktemp("aarch64"), "arm64")


def test_arm64_holds_nothing_of_this_machine(foreign):
    aarch64 = 183  # EM_AARCH64
    assert set(modules(foreign).values()) == {aarch64}


def test_arm64_is_built_here(docker, engine, foreign):
    """On nothing, in place of a busybox for arm64: building runs nothing, so no other machine is needed."""
    debians = Path("/usr/bin/docker")  # builds with BuildKit without a plugin
    client = debians if debians.exists() else need("docker")
    _, socket = docker
    words = ("build", "-q", "--platform=linux/arm64", "--build-arg=BASE=scratch")
    subprocess.run(
        [client, "-H", f"unix://{socket}", *words, "-t", f"{INJECTOR}-arm64", foreign],
        check=True,
        env={**os.environ, "DOCKER_BUILDKIT": "1"},
    )
    about = json.loads(engine("image", "inspect", f"{INJECTOR}-arm64"))[0]
    assert (about["Architecture"], about["Size"] < 60e6) == ("arm64", True)


def test_arm64_s_tracer_counts(foreign, tmp_path):
    build = Build(tmp_path, need("aarch64-linux-gnu-gcc"))
    tracer = foreign / "payload/lib/capture_canary/_native/libcapturetrace.so"
    folder = tmp_path / "traces"
    folder.mkdir()
    settings = f"LD_PRELOAD={tracer},LD_LIBRARY_PATH={build.folder}"
    qemu = [need("qemu-aarch64-static"), "-L", "/usr/aarch64-linux-gnu", "-E", settings]
    check_plain(run_traced(folder, [], [*qemu, build.client("linked"), "plain"]))
