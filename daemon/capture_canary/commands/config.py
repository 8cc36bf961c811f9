"""`capture-canary config`: check a file, show the settings in force, print schema and reference."""

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from capture_canary.config import ConfigError, Effective, Problem, combine, find_config, load
from capture_canary.config.document import read_file
from capture_canary.config.keys import keys, schema, shown, value_of
from capture_canary.config.reference import reference
from capture_canary.exits import USAGE

_FLAGS = {
    "listen": "address of pages and metrics, HOST:PORT",
    "emulate": "run on an emulated CANN, key=value,…",
    "state_dir": "folder of what must outlive a restart",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's actions and flags."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    check = _action(actions, "check", _check, "check a file; say all that is wrong with it")
    check.add_argument("file", type=Path)
    show = _action(actions, "show", _show, "show the settings in force and where each came from")
    show.add_argument("--json", action="store_true", help="as one JSON object")
    add_settings(show)
    _action(actions, "schema", _schema, "print the JSON Schema of the file")
    _action(actions, "reference", _reference, "print every key in Markdown")


def run(args: argparse.Namespace) -> int:
    """Do the action; return 0, or 2 where settings cannot be used."""
    try:
        args.act(args)
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return USAGE
    return 0


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the flags that choose settings, the same for every command that has any."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="configuration file")
    for name, text in _FLAGS.items():
        bare: dict[str, Any] = {"nargs": "?", "const": "cann=8.5.0"} if name == "emulate" else {}
        parser.add_argument(f"--{name.replace('_', '-')}", dest=name, help=text, **bare)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any setting, such as probe.interval=6h",
    )


def flags_of(args: argparse.Namespace) -> dict[str, str]:
    """Return the settings that flags chose, as texts by dotted name.

    Raises:
        ConfigError: a --set is no KEY=VALUE.
    """
    flags: dict[str, str] = {}
    for pair in args.set:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError([Problem("--set", f"{shown(pair)} is not KEY=VALUE")])
        flags[name] = value
    chosen = {name: getattr(args, name) for name in _FLAGS}
    return flags | {name: value for name, value in chosen.items() if value is not None}


def settings_of(args: argparse.Namespace) -> Effective:
    """Return the settings in force for a command's arguments.

    Raises:
        ConfigError: they cannot be used.
    """
    return load(find_config(args.config, os.environ), os.environ, flags_of(args))


def _action(
    actions: Any, name: str, act: Callable[[argparse.Namespace], None], text: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=text)
    parser.set_defaults(act=act)
    return parser


def _check(args: argparse.Namespace) -> None:
    # The file alone: whether it is right must not depend on who asks, or where.
    combine(read_file(args.file), {}, {}, privileged=True)
    sys.stdout.write(f"{args.file}: no problem found\n")


def _show(args: argparse.Namespace) -> None:
    effective = settings_of(args)
    rows = [
        (key, value_of(effective.config, name), effective.sources[name])
        for name, key in keys().items()
    ]
    if args.json:
        report = {
            key.name: {"value": key.plain(value), "source": source.kind, "where": source.where}
            for key, value, source in rows
        }
        sys.stdout.write(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
        return
    lines = [(f"{key.name}: {key.text(value)}", source) for key, value, source in rows]
    width = max(len(text) for text, _ in lines)
    for text, source in lines:
        sys.stdout.write(f"{text:{width}}  # {source.where}\n")


def _schema(_: argparse.Namespace) -> None:
    sys.stdout.write(json.dumps(schema(), indent=2, ensure_ascii=False) + "\n")


def _reference(_: argparse.Namespace) -> None:
    sys.stdout.write(reference())
