"""Make an environment: venv, packages as pinned, stand-ins, a first import. Run again, it goes on where it stopped."""

import fcntl
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from capture_canary import emulate
from capture_canary.environments import standins
from capture_canary.environments.layout import Environment
from capture_canary.environments.recipes import Recipe, RecipeError, default_dir, recipe
from capture_canary.native import emulated_cann_dir

_NO_INDEX = re.compile(
    r"NewConnectionError|ConnectTimeout|NameResolution|ProxyError|from versions: none"
)
_LINES_SHOWN = 12


class CreateError(RuntimeError):
    """The environment could not be made; the message says what to do."""


Say = Callable[[str], None]


def create(wanted: Recipe, folder: Path, python: str | None, say: Say) -> Environment:
    """Make the environment in `folder`, or finish or refresh the one that is there.

    Raises:
        CreateError: a step failed; what was done stays for the next run.
    """
    folder.mkdir(parents=True, exist_ok=True)
    environment = Environment(wanted.name, folder / wanted.name)
    with _locked(environment):
        if environment.made() != wanted.digest():
            _make_venv(environment, python or wanted.python(), say)
            _install(environment, wanted, say)
            say("building stand-ins for what its packages link")
            _build_standins(environment)
            if wanted.sources:
                _install_sources(environment, wanted, say)
            if wanted.device:
                _set_device(environment, wanted.device)
        _build_standins(environment)
        say("importing torch_npu on the emulated CANN")
        _check(environment)
        environment.mark(wanted.digest())
    return environment


@contextmanager
def _locked(environment: Environment) -> Iterator[None]:
    """Keep two processes from working on one environment at a time."""
    file = environment.folder.parent / f".{environment.name}.lock"
    with file.open("w", encoding="utf-8") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield


def _make_venv(environment: Environment, python: str, say: Say) -> None:
    probe = [str(environment.python), "-m", "pip", "--version"]
    begun = environment.python.exists() and not environment.made()
    if begun and _run(environment, probe, {}) == 0:
        return
    say(f"making a virtual environment in {environment.folder} with {python}")
    code = _run(environment, [python, "-m", "venv", "--clear", str(environment.folder)], {})
    if code != 0:
        raise _failed(environment, f"{python} -m venv failed (on Debian: apt install python3-venv)")


def _install(environment: Environment, recipe: Recipe, say: Say) -> None:
    say(f"installing {recipe.summary}; log: {environment.log}")
    _pip(environment, ["-r", str(recipe.wheels)], {})


def _install_sources(environment: Environment, recipe: Recipe, say: Say) -> None:
    say(f"building {recipe.sources}; log: {environment.log}")
    environ = {**environment.variables(emulate.parse(""), os.environ), **recipe.build_environ}
    _pip(environment, ["--no-build-isolation", "-r", str(recipe.sources)], environ)


def _set_device(environment: Environment, device: str) -> None:
    """Say for which SoC vllm-ascend was built, in the file that its build generates for that.

    Its wheel on PyPI is for A2. A build of its sdist for another SoC without kernels gives the same Python code but for
    this file; kernels do not run on the emulated CANN.
    """
    file = environment.site_packages() / "vllm_ascend" / "_build_info.py"
    file.write_text(f"# Auto-generated file\n__device_type__ = {device!r}\n", encoding="utf-8")


def _pip(environment: Environment, arguments: list[str], environ: dict[str, str]) -> None:
    command = [str(environment.python), "-m", "pip", "install", "--no-deps", "--no-input"]
    code = _run(environment, [*command, "--disable-pip-version-check", *arguments], environ)
    if code == 0:
        return
    if _NO_INDEX.search(environment.log.read_text(encoding="utf-8", errors="replace")):
        raise _failed(
            environment,
            "pip reached no package index that has these: check the network, PIP_INDEX_URL, HTTPS_PROXY",
        )
    raise _failed(environment, "pip failed")


def find(name: str, folder: Path | None = None) -> Environment:
    """Return an environment that is ready; make its stand-ins again where this package has become another.

    Raises:
        RecipeError: it is not there, not finished, made from other requirements, or unknown.
        CreateError: its stand-ins do not compile.
    """
    kept = folder or default_dir()
    environment = Environment(name, kept / name)
    if environment.made() != recipe(name).digest():
        raise RecipeError(
            f"{name} is not ready in {kept}: make it with `capture-canary env create {name}`"
        )
    # An environment in an image may be read-only: nothing is written where nothing is to be done.
    if not standins.fresh(environment.site_packages(), _emulated(), environment.standins):
        with _locked(environment):
            _build_standins(environment)
    return environment


def _emulated() -> Path:
    return emulated_cann_dir() / "lib64"


def _build_standins(environment: Environment) -> None:
    try:
        standins.refresh(environment.site_packages(), _emulated(), environment.standins)
    except subprocess.CalledProcessError as error:
        raise CreateError(f"the C compiler refused a stand-in: {error.stderr}") from error


def _check(environment: Environment) -> None:
    code = "import torch, torch_npu; assert torch.npu.is_available(), 'torch sees no NPU'"
    variables = environment.variables(emulate.parse(""), os.environ)
    if _run(environment, [str(environment.python), "-c", code], variables) != 0:
        raise _failed(environment, "torch_npu does not import on the emulated CANN")


def _run(environment: Environment, command: list[str], environ: dict[str, str]) -> int:
    """Run a step with its output in the log, from its start there."""
    environment.log.parent.mkdir(parents=True, exist_ok=True)
    with environment.log.open("wb") as log:
        return subprocess.run(
            command, stdout=log, stderr=log, env={**os.environ, **environ}, check=False
        ).returncode


def _failed(environment: Environment, message: str) -> CreateError:
    text = environment.log.read_text(encoding="utf-8", errors="replace")
    tail = "\n  ".join(text.splitlines()[-_LINES_SHOWN:])
    return CreateError(f"{message}; the end of {environment.log}:\n  {tail}")
