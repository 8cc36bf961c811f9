"""The builds, once a test process."""

import pytest

from tests.failing.emulator import Builds
from tests.tracer.building import Build


@pytest.fixture(scope="session")
def builds(tmp_path_factory):
    return Builds(tmp_path_factory.mktemp("failing"))


@pytest.fixture(scope="session")
def clients(tmp_path_factory):
    return Build(tmp_path_factory.mktemp("clients"))
