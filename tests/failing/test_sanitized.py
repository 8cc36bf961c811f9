"""The emulated CANN, ranks as threads among it, under the thread, address, undefined and leak sanitizers."""

import pytest

from tests.failing.emulator import SANITIZER_OPTIONS, UNLINKS, Builds, broken


@pytest.fixture(scope="module", params=["thread", "address,undefined"])
def sanitized(request, tmp_path_factory):
    return Builds(tmp_path_factory.mktemp("sanitized"), request.param)


@pytest.mark.parametrize("client", ["operators", "device", "ranks"])
def test_clean(sanitized, tmp_path, client):
    bench = sanitized.bench(client, UNLINKS, **SANITIZER_OPTIONS)
    assert broken(bench.run(tmp_path / "run")) == ""
