"""From file, environment and flags to the settings in force, and where each came from. The later wins."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml

from capture_canary.config import places
from capture_canary.config.document import File, line, parse, read_file
from capture_canary.config.environment import CONFIG_VARIABLE, settings
from capture_canary.config.keys import Key, Raw, build, keys, sections, shown
from capture_canary.config.model import Config, conflicts
from capture_canary.config.problems import ConfigError, Problem, Problems, unknown

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


class Source(NamedTuple):
    """Where a value came from."""

    kind: Literal["default", "file", "environment", "flag"]
    where: str
    """`FILE:LINE`, the variable, the flag, or what the default rests on."""


class Effective(NamedTuple):
    """The settings in force and the source of each, by dotted name."""

    config: Config
    sources: Mapping[str, Source]


def find_config(named: Path | None, environ: Mapping[str, str]) -> Path | None:
    """Return the configuration file to use: the one named, CAPTURE_CANARY_CONFIG's, or the default if it exists."""
    if named or environ.get(CONFIG_VARIABLE):
        return named or Path(environ[CONFIG_VARIABLE])
    return places.default_config(environ, privileged=os.geteuid() == 0)


def load(path: Path | None, environ: Mapping[str, str], flags: Mapping[str, str]) -> Effective:
    """Read the file (None: there is none) and put the environment and the flags over it.

    Raises:
        ConfigError: something in them cannot be used; names all of it.
    """
    return combine(read_file(path) if path else None, environ, flags)


def combine(
    file: File | None,
    environ: Mapping[str, str],
    flags: Mapping[str, str],
    *,
    privileged: bool | None = None,
) -> Effective:
    """Do as `load`, with the file's content. `flags` are texts by dotted name.

    Raises:
        ConfigError: something in them cannot be used; names all of it.
    """
    problems = Problems()
    values: dict[str, Any] = {}
    sources: dict[str, Source] = {}
    for key, source, raw in _layers(file, environ, flags, problems, privileged=privileged):
        try:
            values[key.name] = key.read(raw)
        except ValueError as error:
            problems.add(source.where, f"{key.name}: {error}")
        sources[key.name] = source
    problems.settle()
    config = build(values)
    effective = Effective(
        config, {name: sources.get(name, Source("default", "built in")) for name in keys()}
    )
    for name, message in conflicts(config):
        source = effective.sources[name]
        where = source.where if source.kind != "default" else "the default"
        problems.add(where, f"{name}: {message}")
    problems.settle()
    return effective


def _layers(
    file: File | None,
    environ: Mapping[str, str],
    flags: Mapping[str, str],
    problems: Problems,
    *,
    privileged: bool | None,
) -> Iterator[tuple[Key, Source, Raw]]:
    if privileged is None:
        privileged = os.geteuid() == 0
    for name, text in places.default_folders(environ, privileged=privileged).items():
        yield keys()[name], Source("default", "XDG base directories"), text
    if file:
        for key, number, raw in _from_file(file, problems):
            yield key, Source("file", f"{file.name}:{number}"), raw
    for key, variable, text in settings(environ, problems):
        yield key, Source("environment", variable), _from_text(key, text)
    for name, text in flags.items():
        flag_key = keys().get(name)
        if flag_key:
            yield flag_key, Source("flag", _flag(name)), _from_text(flag_key, text)
        else:
            problems.add("--set", unknown(name))


def _flag(name: str) -> str:
    return f"--set {name}" if "." in name else f"--{name.replace('_', '-')}"


def _from_text(key: Key, text: str) -> Raw:
    if key.optional and text in _NULLS:
        return None
    if key.is_list:
        return [part.strip() for part in text.split(",")] if text.strip() else []
    return text


def _from_file(file: File, problems: Problems) -> Iterator[tuple[Key, int, Raw]]:
    for name, number, node in _entries(parse(file), file, "", problems):
        if name in sections():
            for inner, inner_number, value in _entries(node, file, name, problems):
                yield from _leaf((name, inner), inner_number, value, file, problems)
        else:
            yield from _leaf(("", name), number, node, file, problems)


def _leaf(
    path: tuple[str, str], number: int, node: yaml.Node, file: File, problems: Problems
) -> Iterator[tuple[Key, int, Raw]]:
    section, name = path
    key = None if "." in name else keys().get(f"{section}.{name}".lstrip("."))
    if not key:
        problems.add(f"{file.name}:{number}", unknown(name, section))
        return
    try:
        yield key, number, _raw(node)
    except ValueError:
        problems.add(f"{file.name}:{number}", f"{key.name}: expects {key.expects}")


def _raw(node: yaml.Node) -> Raw:
    if isinstance(node, yaml.ScalarNode):
        return None if node.style is None and node.value in _NULLS else str(node.value)
    items = node.value if isinstance(node, yaml.SequenceNode) else [node]
    if not all(isinstance(item, yaml.ScalarNode) for item in items):
        raise ValueError("neither a value nor a list of values")
    return [str(item.value) for item in items]


def _entries(
    node: yaml.Node | None, file: File, section: str, problems: Problems
) -> Iterator[tuple[str, int, yaml.Node]]:
    if node is None or (isinstance(node, yaml.ScalarNode) and _raw(node) is None):
        return  # an empty file or section says nothing
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError(
            [
                Problem(
                    f"{file.name}:{line(node)}", f"{section or 'the file'} must be keys and values"
                )
            ]
        )
    seen: dict[str, int] = {}
    for name_node, value in node.value:
        number = line(name_node)
        if not isinstance(name_node, yaml.ScalarNode):
            problems.add(f"{file.name}:{number}", "a key must be a word")
            continue
        name = str(name_node.value)
        if name in seen:
            problems.add(
                f"{file.name}:{number}", f"{shown(name)} is there twice, first in line {seen[name]}"
            )
            continue
        seen[name] = number
        yield name, number, value
