"""What the commands that measure have in common: on which CANN, with which Python, what vLLM captures, how they end."""

import argparse
import contextlib
import importlib.util
import math
import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NoReturn

from rich.console import Console

from capture_canary import emulate, environments
from capture_canary.config import Config, ConfigError, find_config, load
from capture_canary.emulate import EmulationError
from capture_canary.exits import USAGE
from capture_canary.lock import acquire
from capture_canary.model import Report
from capture_canary.probe.base import base_environment
from capture_canary.probe.settings import ProbeSettings
from capture_canary.probe.vllm import tiny

_SIGNALLED = 128
"""A shell's exit code of what a signal ended, less its number."""


_MAX_PATH = 1024
"""Of a folder that is told to other processes, in a line with all the rest."""


class UsageError(Exception):
    """An option's value is none; the message names the option."""


def add_stack(parser: argparse.ArgumentParser) -> None:
    """Add the options that say on which CANN and with which Python."""
    parser.add_argument(
        "--emulate",
        metavar="KEY=VALUE,…",
        nargs="?",
        const="",
        default=os.environ.get("CAPTURE_CANARY_EMULATE"),
        help="run on the emulated CANN, e.g. cann=8.5.0,soc=a3 (docs/emulation.md)",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--python",
        metavar="PATH",
        default=ProbeSettings().python,
        help="the Python that has the torch-npu to probe, and msgspec (this one)",
    )
    which.add_argument(
        "--env", metavar="NAME", help="an environment (docs/environments.md), on the emulated CANN"
    )


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the options of what vLLM captures."""
    parser.add_argument(
        "--model", metavar="DIR", help="vllm: a model's folder (a tiny one of --layers layers)"
    )
    parser.add_argument(
        "--layers",
        type=positive,
        metavar="N",
        help=f"vllm: layers of the tiny model, two collectives each ({tiny.LAYERS}; emulated {tiny.EMULATED_LAYERS})",
    )


def stack(args: argparse.Namespace) -> tuple[str, dict[str, str]]:
    """Return the Python to measure with, and the environment that names its CANN.

    Raises:
        UsageError: there is no such CANN, environment or Python.
    """
    if args.env is None:
        try:
            base = base_environment(os.environ, args.emulate)
        except (EmulationError, OSError) as error:
            raise UsageError(f"--emulate: {error}") from None
        found = shutil.which(args.python)
        if found is None:
            raise UsageError(f"--python: {args.python} cannot be run")
        return os.path.abspath(found), base  # noqa: PTH100  # a venv's Python must stay a link
    try:
        environment = environments.find(args.env)
    except (environments.RecipeError, environments.CreateError) as error:
        raise UsageError(f"--env: {error}") from None
    try:
        variables = environment.variables(emulate.parse(args.emulate or ""), os.environ)
    except (EmulationError, OSError) as error:
        raise UsageError(f"--emulate: {error}") from None
    return str(environment.python), {**os.environ, **variables}


def emulated(args: argparse.Namespace) -> bool:
    """Return whether all this is on the emulated CANN."""
    return args.emulate is not None or args.env is not None


def config(args: argparse.Namespace) -> Config:
    """Return this node's settings: its lock, its gate.

    Raises:
        UsageError: they cannot be used.
    """
    flags = {"emulate": args.emulate or ""} if emulated(args) else {}
    try:
        return load(find_config(None, os.environ), os.environ, flags).config
    except ConfigError as error:
        raise UsageError(f"{error}") from None


@contextlib.contextmanager
def lock(args: argparse.Namespace) -> Iterator[None]:
    """Keep others from probing on this node meanwhile; an emulated node is nobody else's.

    Raises:
        LockBusyError: somebody probes.
        LockUnusableError: there is no lock to be had.
    """
    if emulated(args):
        yield
        return
    held = acquire(config(args).lock_file)
    try:
        yield
    finally:
        held.release()


def layers(args: argparse.Namespace) -> int:
    """Return the layers of the tiny model: more show more, and an emulated run copies real bytes."""
    return int(args.layers or (tiny.EMULATED_LAYERS if emulated(args) else tiny.LAYERS))


def model(args: argparse.Namespace) -> str | None:
    """Return the model's folder, absolute; None where none was named.

    Raises:
        UsageError: it is none.
    """
    if args.model is None:
        return None
    if len(args.model) > _MAX_PATH:
        raise UsageError(f"--model: is longer than {_MAX_PATH} characters")
    folder = Path(args.model).absolute()  # the processes that read it work elsewhere
    try:
        found = (folder / "config.json").is_file()
    except (OSError, ValueError) as error:
        raise UsageError(f"--model: {error}") from None
    if not found:
        raise UsageError(f"--model: {args.model} has no config.json")
    return str(folder)


def check_plot(path: Path | None) -> None:
    """See that a picture can be drawn there, before what it is to show is measured.

    Raises:
        UsageError: it can't.
    """
    if path is None:
        return
    if path.suffix not in {".png", ".svg"}:
        raise UsageError(f"--plot: {path} ends neither in .png nor in .svg")
    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError("--plot needs matplotlib: pip install 'capture-canary[report]'")


def plot(report: Report, path: Path | None, errors: Console) -> int:
    """Write the curves where that was asked for; return USAGE where it cannot be."""
    if path is None:
        return 0
    from capture_canary.report import picture  # noqa: PLC0415  # needs the extra `report`

    try:
        picture.save_report(report, path)
    except OSError as error:
        errors.print(f"--plot: {error}", markup=False)
        return USAGE
    return 0


def end_in_good_order() -> None:
    """Have the first signal end the probe, its processes and its files; a second one must not interrupt that."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        for one in numbers:
            signal.signal(one, signal.SIG_IGN)
        raise SystemExit(_SIGNALLED + number)

    for number in numbers:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, end)


def bounded(text: str, most: int) -> int:
    """Return a number between 1 and `most`."""
    if not re.fullmatch(r"[0-9]{1,9}", text, re.ASCII) or not 1 <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 1 and {most}")
    return int(text)


def positive(text: str) -> int:
    """Return a number between 1 and 10000."""
    return bounded(text, 10_000)


def seconds(text: str) -> float:
    """Return a number of seconds up to a day."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 86_400:  # noqa: PLR2004  # a day
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds up to a day")
    return value


def existing(text: str) -> Path:
    """Return the path of something that is there."""
    path = Path(text)
    try:
        path.stat()
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{text[:80]!r}: {error}") from None
    return path
