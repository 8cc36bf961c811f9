"""Every library of ours loads on glibc 2.28, wherever it was built: the tracer goes into images with an old one."""

import re
import subprocess

import pytest
from tests.tracer.building import need

from capture_canary.native import native_dir

FLOOR = (2, 28)
LIBRARIES = sorted(native_dir().rglob("*.so"))


def glibc_needed(library):
    printed = subprocess.run(
        [need("objdump"), "-T", library], check=True, capture_output=True, text=True
    ).stdout
    undefined = [line for line in printed.splitlines() if "*UND*" in line]
    found = [re.search(r"GLIBC_([\d.]+)\)? +(\S+)", line) for line in undefined]
    return {m[2]: tuple(map(int, m[1].split("."))) for m in found if m}


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda path: str(path.relative_to(native_dir())))
def test_symbols(library):
    needed = glibc_needed(library)
    assert needed
    assert {name: version for name, version in needed.items() if version > FLOOR} == {}


def test_libraries_are_found():
    names = {path.name for path in LIBRARIES}
    assert {"libcapturetrace.so", "libhccl.so", "libacl_rt.so", "libruntime.so"} <= names


def test_tracer_needs_nothing_but_libc():
    library = native_dir() / "libcapturetrace.so"
    printed = subprocess.run(
        [need("readelf"), "-d", library], check=True, capture_output=True, text=True
    ).stdout
    assert set(re.findall(r"NEEDED.*\[(.+)\]", printed)) <= {"libc.so.6", "libdl.so.2"}
