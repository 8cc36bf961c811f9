"""Make an environment: venv, packages as pinned, stand-ins, a first import. Run again, it goes on where it stopped."""

import fcntl
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from capture_canary.environments import standins
from capture_canary.environments.layout import Environment
from capture_canary.environments.recipes import Recipe
from capture_canary.native import emulated_cann_dir

_NO_NETWORK = re.compile(
    r"NewConnectionError|ConnectTimeout|Failed to establish|Temporary failure in name resolution|ProxyError"
)
_LINES_SHOWN = 12


class CreateError(RuntimeError):
    """The environment could not be made; the message says what to do."""


Say = Callable[[str], None]


def create(recipe: Recipe, folder: Path, python: str | None, say: Say) -> Environment:
    """Make the environment in `folder`, or finish or refresh the one that is there.

    Raises:
        CreateError: a step failed; what was done stays for the next run.
    """
    folder.mkdir(parents=True, exist_ok=True)
    environment = Environment(recipe.name, folder / recipe.name)
    with _locked(folder / f".{recipe.name}.lock"):
        done = environment.done()
        if done.get("packages") != recipe.digest():
            _make_venv(environment, python or recipe.python(), say)
            _install(environment, recipe, say)
        say("building stand-ins for what its packages link")
        _build_standins(environment)
        if recipe.sources and done.get("packages") != recipe.digest():
            _install_sources(environment, recipe, say)
            _build_standins(environment)
        say("importing torch_npu on the emulated CANN")
        _check(environment)
        environment.mark({"packages": recipe.digest(), "standins": standins.digest()})
    return environment


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Keep two commands from making one environment at a time."""
    with file.open("w", encoding="utf-8") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield


def _make_venv(environment: Environment, python: str, say: Say) -> None:
    probe = [str(environment.python), "-m", "pip", "--version"]
    if environment.python.exists() and _run(environment, probe, {}) == 0:
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
    environ = {**recipe.build_environ, "LD_LIBRARY_PATH": os.pathsep.join(environment.libraries())}
    environ["PATH"] = f"{environment.python.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    _pip(environment, ["--no-build-isolation", "-r", str(recipe.sources)], environ)


def _pip(environment: Environment, arguments: list[str], environ: dict[str, str]) -> None:
    command = [str(environment.python), "-m", "pip", "install", "--no-deps", "--no-input"]
    code = _run(environment, [*command, "--disable-pip-version-check", *arguments], environ)
    if code == 0:
        return
    if _NO_NETWORK.search(environment.log.read_text(encoding="utf-8", errors="replace")):
        raise _failed(environment, "pip reached no package index: check the network, PIP_INDEX_URL, HTTPS_PROXY")
    raise _failed(environment, "pip failed")


def _build_standins(environment: Environment) -> None:
    found = standins.plan(environment.site_packages(), [emulated_cann_dir() / "lib64"])
    try:
        standins.build(found, environment.standins)
    except subprocess.CalledProcessError as error:
        raise CreateError(f"the C compiler refused a stand-in: {error.stderr}") from error


def _check(environment: Environment) -> None:
    code = "import torch, torch_npu; assert torch.npu.is_available(), 'torch sees no NPU'"
    if _run(environment, [str(environment.python), "-c", code], environment.variables()) != 0:
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
