"""The tracer and its clients under the thread, address and undefined-behaviour sanitizers."""

import subprocess
from pathlib import Path

import pytest

from .building import Build, need, run_traced

SCENARIOS = [
    "plain",
    "threads",
    "overlapping",
    "overlapping-device",
    "crowd",
    "configured",
    "failing",
]


def runtime_of(sanitizer):
    """The sanitizer's runtime wants to be the first library of all."""
    name = {"thread": "libtsan.so", "address,undefined": "libasan.so"}[sanitizer]
    found = subprocess.run(
        [need("gcc"), f"-print-file-name={name}"], check=True, capture_output=True, text=True
    )
    return Path(found.stdout.strip())


@pytest.fixture(scope="module", params=["thread", "address,undefined"])
def sanitized(request, tmp_path_factory):
    flags = (f"-fsanitize={request.param}", "-fno-omit-frame-pointer")
    build = Build(tmp_path_factory.mktemp("sanitized"), flags=flags)
    return request.param, build, build.tracer()


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("way", ["linked", "handle"])
def test_clean(sanitized, folder, way, scenario):
    sanitizer, build, tracer = sanitized
    run = run_traced(
        folder,
        [runtime_of(sanitizer), tracer],
        [build.client(way), scenario],
        LD_LIBRARY_PATH=str(
            build.folder
        ),  # a sanitizer stands between dlopen and the client's own path
        ASAN_OPTIONS="detect_leaks=0",
        UBSAN_OPTIONS="halt_on_error=1",
        TSAN_OPTIONS="halt_on_error=1",
    )
    assert (run.code, run.errors) == (0, "")
    assert run.only
