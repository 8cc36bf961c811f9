"""Tests in a forked process of their own, with one module replaced in memory: no file of the project ever changes."""

import gc
import importlib.abc
import importlib.util
import os
import resource
import select
import signal
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Literal

import coverage  # pyright: ignore[reportMissingImports] - of the group `mutation`, which linters do without
import msgspec
import pytest

Outcome = Literal["killed", "survived", "timeout"]

PACKAGE = "capture_canary"
ROOT = Path(__file__).parents[2]
MEMORY = 4 << 30
"""Address space of a mutant, which may allocate without end."""
RECORDING = 3600.0
"""Seconds that tests may take on the code as it is, with every line noted."""
_PYTEST = (
    *("-q", "-x", "--assert=plain", "-p", "no:cacheprovider"),
    *("--disable-plugin-autoload", "-p", "_hypothesis_pytestplugin"),
    "--hypothesis-profile=mutants",
)
_ONCE = ("_hypothesis_pytestplugin", "hypothesis.strategies", "scipy.stats", "structlog")
"""What tests import and no mutant changes: a fork has it from its parent."""
_NO_TESTS = pytest.ExitCode.NO_TESTS_COLLECTED


class Covered(msgspec.Struct):
    """Which tests run which lines of the package, and how long each takes."""

    tests: dict[str, dict[int, list[str]]]
    """By file and line."""
    seconds: dict[str, float]


class _Replaced(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives a module another text than that of its file."""

    def __init__(self, path: Path, source: str) -> None:
        self._path = path
        self._name = ".".join((PACKAGE, *path.with_suffix("").parts[-_depth(path) :]))
        self._source = source

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        del path, target
        if fullname != self._name:
            return None
        return importlib.util.spec_from_loader(fullname, self, origin=str(self._path))

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = str(self._path)
        exec(compile(self._source, self._path, "exec"), module.__dict__)  # noqa: S102 - our own module, mutated


class _Recorder:
    """Notes for each test which lines it ran and for how long."""

    def __init__(self) -> None:
        self.coverage = coverage.Coverage(data_file=None, source_pkgs=[PACKAGE], config_file=False)
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> object:
        _forget()
        self.coverage.switch_context(name_of(item.nodeid))
        result = yield
        self.coverage.switch_context("")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[name_of(report.nodeid)] += report.duration

    def covered(self) -> Covered:
        data = self.coverage.get_data()
        tests = {
            path: {
                line: [name for name in names if name]
                for line, names in data.contexts_by_lineno(path).items()
            }
            for path in data.measured_files()
        }
        return Covered(tests=tests, seconds=dict(self.seconds))


def _forget() -> None:
    """Clear the package's caches: what is remembered from one test would not be seen to run in the next."""
    for name, module in [*sys.modules.items()]:
        if name.partition(".")[0] == PACKAGE:
            for value in vars(module).values():
                if callable(clear := getattr(value, "cache_clear", None)):
                    clear()


def name_of(nodeid: str) -> str:
    """Return a test's name without its parameters, which a mutant may change."""
    return nodeid.partition("[")[0]


def record(tests: Sequence[str], scratch: Path) -> Covered:
    """Run tests on the code as it is.

    Raises:
        SystemExit: they do not pass.
    """
    answer = scratch / "covered.json"

    def run() -> int:
        recorder = _Recorder()
        recorder.coverage.start()
        code = pytest.main([*_PYTEST, f"--basetemp={scratch / 'tmp'}", *tests], [recorder])
        recorder.coverage.stop()
        answer.write_bytes(msgspec.json.encode(recorder.covered()))
        return code

    for name in _ONCE:
        importlib.import_module(name)
    gc.freeze()  # pytest collects garbage: not in what each fork shares
    code = _forked(run, RECORDING, quiet=False)
    if code != 0:
        raise SystemExit(f"{' '.join(tests)}: pytest ended with {code} on the code as it is")
    return msgspec.json.decode(answer.read_bytes(), type=Covered)


def outcome(
    path: Path, source: str, tests: Sequence[str], *, seconds: float, scratch: Path
) -> Outcome:
    """Run tests with a module's text replaced; `seconds` is how long they may take."""

    def run() -> int:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        sys.meta_path.insert(0, _Replaced(path, source))
        return pytest.main([*_PYTEST, f"--basetemp={scratch / 'tmp'}", *tests])

    code = _forked(run, seconds, quiet=True)
    if code == _NO_TESTS:
        raise SystemExit(f"{' '.join(tests)}: no tests")
    return "timeout" if code is None else "survived" if code == 0 else "killed"


def _forked(run: Callable[[], int], seconds: float, *, quiet: bool) -> int | None:
    """Return what a function returns in a process of its own, in a group of its own; None where it took too long."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.setsid()
            if quiet:
                nothing = os.open(os.devnull, os.O_RDWR)
                for fd in (0, 1, 2):
                    os.dup2(nothing, fd)
            code = int(run())
        finally:
            os._exit(code)
    fd = os.pidfd_open(child)
    try:
        ended = select.select([fd], [], [], seconds)[0]
        if not ended:
            os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    finally:
        os.close(fd)
    return os.waitstatus_to_exitcode(status) if ended else None


def _depth(path: Path) -> int:
    return len(path.parts) - 1 - path.parts.index(PACKAGE)
