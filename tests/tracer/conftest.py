"""The C builds, once a test process."""

import pytest

from capture_canary.native import tracer_path

from .building import Build


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    return Build(tmp_path_factory.mktemp("clients"))


@pytest.fixture(scope="session")
def tracer():
    return tracer_path()


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "traces"
    made.mkdir()
    return made
