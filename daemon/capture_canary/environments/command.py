"""`capture-canary env`: make, list and use environments with real torch-npu on the emulated CANN."""

import argparse
import os
import sys
from pathlib import Path

from capture_canary.environments.create import CreateError, create
from capture_canary.environments.elf import ToolMissingError
from capture_canary.environments.layout import Environment
from capture_canary.environments.recipes import RecipeError, default_dir, names, recipe

_FAILED = 1
_USAGE = 2


def main(argv: list[str]) -> int:
    """Run the command on its arguments; return its exit code."""
    arguments = _parser().parse_args(argv)
    folder: Path = arguments.dir or default_dir()
    try:
        return int(arguments.run(arguments, folder))
    except RecipeError as error:
        sys.stderr.write(f"capture-canary env: {error}\n")
        return _USAGE
    except (CreateError, ToolMissingError, OSError) as error:
        sys.stderr.write(f"capture-canary env: {error}\n")
        return _FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="capture-canary env", description=__doc__)
    parser.add_argument("--dir", type=Path, help="where environments are kept ($CAPTURE_CANARY_ENVS)")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    made = commands.add_parser("create", help="make one, or finish or refresh it")
    made.add_argument("name", metavar="NAME")
    made.add_argument("--python", help="the interpreter to make it with")
    made.set_defaults(run=_create)
    listed = commands.add_parser("list", help="show those that there are")
    listed.set_defaults(run=_list)
    found = commands.add_parser("path", help="print the folder of one")
    found.add_argument("name", metavar="NAME")
    found.set_defaults(run=_path)
    used = commands.add_parser("exec", help="run a command in one, on the emulated CANN")
    used.add_argument("name", metavar="NAME")
    used.add_argument("--emulate", default="", metavar="SETTINGS", help="e.g. cann=8.5.0,soc=a3")
    used.add_argument("command", nargs=argparse.REMAINDER, metavar="CMD")
    used.set_defaults(run=_exec)
    for each in (made, listed, found, used):
        each.add_argument("--dir", type=Path, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    return parser


def _create(arguments: argparse.Namespace, folder: Path) -> int:
    environment = create(recipe(arguments.name), folder, arguments.python, _say)
    sys.stdout.write(f"{environment.folder}\n")
    return 0


def _say(message: str) -> None:
    sys.stderr.write(f"{message}\n")


def _list(_: argparse.Namespace, folder: Path) -> int:
    for name in names():
        state = _state(Environment(name, folder / name))
        sys.stdout.write(f"{name:<16}{state:<12}{recipe(name).summary}\n")
    return 0


def _state(environment: Environment) -> str:
    done = environment.done()
    if done.get("packages") == recipe(environment.name).digest():
        return "made"
    return "unfinished" if environment.folder.exists() else "-"


def made(name: str, folder: Path) -> Environment:
    """Return an environment that is ready.

    Raises:
        RecipeError: it was not made, or none is called so.
    """
    environment = Environment(name, folder / name)
    if environment.done().get("packages") != recipe(name).digest():
        raise RecipeError(f"{name} is not in {folder}: make it with capture-canary env create {name}")
    return environment


def _path(arguments: argparse.Namespace, folder: Path) -> int:
    sys.stdout.write(f"{made(arguments.name, folder).folder}\n")
    return 0


def _exec(arguments: argparse.Namespace, folder: Path) -> int:
    environment = made(arguments.name, folder)
    command = arguments.command or [str(environment.python)]
    if command[0] == "--":
        command = command[1:]
    environ = {**os.environ, **environment.variables(arguments.emulate)}
    environ["PATH"] = f"{environment.python.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    os.execvpe(command[0], command, environ)  # noqa: S606 - the command is the user's own
