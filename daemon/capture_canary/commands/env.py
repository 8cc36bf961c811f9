"""`capture-canary env`: make, list and use environments with a real torch-npu on the emulated CANN."""

import argparse
import os
import sys
from pathlib import Path

from capture_canary import emulate, environments
from capture_canary.exits import USAGE

_FAILED = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands."""
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    create = commands.add_parser("create", help="make one, or finish or refresh it")
    create.add_argument(
        "--python", help="the interpreter to make it with (one that its wheels have)"
    )
    create.set_defaults(action=_create)
    listed = commands.add_parser("list", help="show those that there are")
    listed.set_defaults(action=_list)
    path = commands.add_parser("path", help="print the folder of one")
    path.set_defaults(action=_path)
    execute = commands.add_parser("exec", help="run a command in one, on the emulated CANN")
    execute.add_argument(
        "--emulate", default="", metavar="KEY=VALUE,…", help="e.g. cann=8.5.0,soc=a3"
    )
    execute.set_defaults(action=_exec)
    for command in (create, listed, path, execute):
        command.add_argument(
            "--dir",
            type=Path,
            default=environments.default_dir(),
            help="where environments are kept, also CAPTURE_CANARY_ENVS (%(default)s)",
        )
    for command in (create, path, execute):
        command.add_argument("name", metavar="NAME", help=", ".join(environments.names()))
    execute.add_argument("words", nargs=argparse.REMAINDER, metavar="CMD …")


def run(args: argparse.Namespace) -> int:
    """Do what the subcommand says; return its exit code."""
    try:
        return int(args.action(args))
    except (environments.RecipeError, emulate.EmulationError) as error:
        sys.stderr.write(f"capture-canary env: {error}\n")
        return USAGE
    except (environments.CreateError, environments.ToolMissingError, OSError) as error:
        sys.stderr.write(f"capture-canary env: {error}\n")
        return _FAILED


def _create(args: argparse.Namespace) -> int:
    recipe = environments.recipe(args.name)
    environment = environments.create(recipe, args.dir, args.python, _say)
    sys.stdout.write(f"{environment.folder}\n")
    return 0


def _say(message: str) -> None:
    sys.stderr.write(f"{message}\n")


def _list(args: argparse.Namespace) -> int:
    for name in environments.names():
        recipe = environments.recipe(name)
        made = environments.Environment(name, args.dir / name).made() == recipe.digest()
        sys.stdout.write(f"{name:<16}{'made' if made else '-':<6}{recipe.summary}\n")
    return 0


def _path(args: argparse.Namespace) -> int:
    sys.stdout.write(f"{environments.find(args.name, args.dir).folder}\n")
    return 0


def _exec(args: argparse.Namespace) -> int:
    environment = environments.find(args.name, args.dir)
    words = args.words[1:] if args.words[:1] == ["--"] else args.words
    command = words or ["python"]
    os.environ.update(environment.variables(emulate.parse(args.emulate), os.environ))
    try:
        os.execvp(command[0], command)  # noqa: S606  # the command is the user's own
    except OSError as error:
        sys.stderr.write(f"capture-canary env: {command[0]}: {error.strerror}\n")
        return _FAILED
