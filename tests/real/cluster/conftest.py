"""One API server for all tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.real.cluster import kube
from tests.real.cluster.rendering import Helm


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    return Helm(kube.clients(), tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kube.Cluster]:
    folder: Path = tmp_path_factory.mktemp("cluster")
    found = kube.Cluster(folder, kube.binaries(), kube.clients())
    try:
        found.start()
        yield found
    finally:
        found.stop()
