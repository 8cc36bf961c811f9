"""The C parts for aarch64, which most Ascend hosts are: built by a cross compiler, run under qemu."""

import subprocess
from pathlib import Path

import pytest
from tests.tracer.building import Build, need, run_traced
from tests.tracer.test_lookups import check_plain

pytestmark = pytest.mark.real

DAEMON = Path(__file__).parents[2] / "daemon"
SYSROOT = "/usr/aarch64-linux-gnu"


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    """All of daemon/, built as a release is."""
    compiler = need("aarch64-linux-gnu-gcc")
    folder = tmp_path_factory.mktemp("aarch64")
    configure = [need("cmake"), "-S", DAEMON, "-B", folder, "-DCMAKE_BUILD_TYPE=Release"]
    configure += [f"-DCMAKE_C_COMPILER={compiler}", "-DCMAKE_SYSTEM_NAME=Linux"]
    configure += ["-DCMAKE_SYSTEM_PROCESSOR=aarch64", "-DCMAKE_C_FLAGS=-Werror"]
    subprocess.run(configure, check=True, capture_output=True)
    subprocess.run([need("cmake"), "--build", folder, "-j2"], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    return Build(tmp_path_factory.mktemp("clients"), need("aarch64-linux-gnu-gcc"))


@pytest.fixture
def run(tmp_path, build):
    folder = tmp_path / "traces"
    folder.mkdir()
    qemu = need("qemu-aarch64-static")

    def traced(tracer, client, *words, libraries=None, **environment):
        """Only the client is traced: qemu itself is of this machine."""
        settings = f"LD_PRELOAD={tracer},LD_LIBRARY_PATH={libraries or build.folder}"
        command = [qemu, "-L", SYSROOT, "-E", settings, client, *words]
        return run_traced(folder, [], command, **environment)

    return traced


@pytest.mark.parametrize("way", ["linked", "handle", "default", "local"])
@pytest.mark.parametrize("optimised", [True, False])
def test_tracer_sees_captures(native, build, run, way, optimised):
    tracer = native / "tracer" / "libcapturetrace.so" if optimised else build.tracer("-O0")
    check_plain(run(tracer, build.client(way), "plain"))


def test_tracer_counts_copies_of_all_threads(native, build, run):
    seen = run(native / "tracer" / "libcapturetrace.so", build.client("linked"), "threads")
    assert (seen.code, seen.copies) == (0, [4000] * 3)


@pytest.mark.parametrize("cann", ["lib64-8.5:lib64", "lib64", "lib64-9.2:lib64"])
def test_emulated_cann(native, build, run, tmp_path, cann):
    folders = [native / "emulated" / name for name in cann.split(":")]
    links = (
        f"-L{folders[-1]}",
        "-lascendcl",
        "-lacl_rt",
        "-Wl,--unresolved-symbols=ignore-in-shared-libs",
    )
    client = Build(tmp_path, build.compiler).compile("emulated", ["emulated.c"], *links)
    seen = run(
        native / "tracer" / "libcapturetrace.so",
        client,
        libraries=":".join(map(str, folders)),
        CAPTURE_CANARY_EMULATE="cann=8.5.0,soc=a3",
        CAPTURE_CANARY_EMULATE_NODE=str(tmp_path / "node"),
    )
    assert (seen.code, seen.errors, seen.copies) == (0, "", [1, 2, 3])


def test_glibc_floor(native):
    libraries = sorted(native.rglob("*.so"))
    assert len(libraries) > 5
    for library in libraries:
        printed = subprocess.run(
            [need("aarch64-linux-gnu-objdump"), "-T", library],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        new = [line for line in printed.splitlines() if "*UND*" in line and "GLIBC_2.3" in line]
        assert new == []
