"""What the tests of the emulated HCCL share: the counter to preload, groups of ranks, a server of growth runs."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.emulator.hccl_client import Group, GrowthServer, build_counter
from tests.emulator.hccl_growth import serve

Run = Callable[..., list[Any]]


@pytest.fixture(scope="session")
def counter(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library to preload, which counts a thread's copies."""
    return build_counter(tmp_path_factory.mktemp("counter"))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Group]]:
    """Start ranks that run a scenario; kills what a test leaves running."""
    groups: list[Group] = []

    def run(scenario: Callable[..., Any], ranks: int = 2, **arguments: Any) -> Group:
        folder = tmp_path / f"group-{len(groups)}"
        folder.mkdir()
        groups.append(Group(scenario, ranks, folder, **arguments))
        return groups[-1]

    yield run
    for group in groups:
        group.kill()


@pytest.fixture
def run(start: Callable[..., Group]) -> Run:
    """Run a scenario to its end; answers by rank."""

    def answers(scenario: Callable[..., Any], ranks: int = 2, **arguments: Any) -> list[Any]:
        return start(scenario, ranks, **arguments).answers()

    return answers


@pytest.fixture(scope="session")
def growth_server(tmp_path_factory: pytest.TempPathFactory, counter: str) -> Iterator[GrowthServer]:
    folder = tmp_path_factory.mktemp("growth")
    group = Group(serve, 2, folder, threads=True, env={"LD_PRELOAD": counter})
    yield GrowthServer(group)
    group.kill()
