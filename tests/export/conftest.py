"""A daemon to look at."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.export.showing import Daemon, serving

from capture_canary.export.server import Server


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    one = Daemon(tmp_path / "state")
    yield one
    one.store.close()


@pytest.fixture
def running(daemon: Daemon) -> Iterator[Server]:
    with serving(daemon) as one:
        yield one
