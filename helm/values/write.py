"""Writes values.yaml, values.schema.json and the README's table from the model."""

import json
import typing
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import yaml
from helm.values.kinds import Amounts
from helm.values.model import Chart

from capture_canary.config.keys import schema as config_schema

OWNED = ("mode", "paused", "listen", "state_dir", "trace_dir", "lock_file")
"""Settings that the chart makes itself."""


class Entry(NamedTuple):
    """A value, or a section of them."""

    path: tuple[str, ...]
    about: str
    default: Any
    section: bool


def entries(
    struct: type[msgspec.Struct], default: Any, prefix: tuple[str, ...] = ()
) -> Iterator[Entry]:
    """Yield every value in the order of the model, a section before what it holds."""
    hints = typing.get_type_hints(struct, include_extras=True)
    for field in msgspec.structs.fields(struct):
        hint = hints[field.name]
        kind, text = hint, ""
        if typing.get_origin(hint) is typing.Annotated:
            kind, *metas = typing.get_args(hint)
            text = next((m.description for m in metas if getattr(m, "description", None)), "")
        value = getattr(default, field.name)
        path = (*prefix, field.encode_name)
        section = (
            isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind is not Amounts
        )
        yield Entry(path, text, value, section)
        if section:
            yield from entries(kind, value, path)


def plain(value: Any) -> Any:
    """Return a value as YAML has it; what is at its default in an `Amounts` or a variant stays out."""
    return msgspec.to_builtins(value)


def values_yaml() -> str:
    """Return values.yaml, commented as helm-docs reads it."""
    lines = [
        "# Values of the chart capture-canary, at their defaults. Made by helm/generate.py from helm/values/: change it there.",
        "",
    ]
    for entry in entries(Chart, Chart()):
        pad = "  " * (len(entry.path) - 1)
        if entry.about:
            lines += [f"{pad}# -- {entry.about}"]
        if entry.section:
            lines.append(f"{pad}{entry.path[-1]}:")
        else:
            text = yaml.safe_dump(
                {entry.path[-1]: plain(entry.default)}, sort_keys=False, width=1000
            )
            lines += [pad + line for line in text.rstrip().splitlines()]
        if len(entry.path) == 1 and not entry.section:
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def values_schema() -> str:
    """Return values.schema.json: closed, with the daemon's own schema at `config`."""
    made = msgspec.json.schema(Chart)
    daemon = config_schema()["$defs"]
    for key in OWNED:
        del daemon["Config"]["properties"][key]
    del daemon["Web"]["properties"]["config_file"]
    for name, definition in daemon.items():
        made["$defs"][f"Daemon{name}"] = json.loads(
            json.dumps(definition).replace('"#/$defs/', '"#/$defs/Daemon')
        )
    config = {"$ref": "#/$defs/DaemonConfig"}
    for owner in ("Chart", "Variant"):
        made["$defs"][owner]["properties"]["config"] = config
    # draft-07: Helm 3 reads no later one, and nothing here needs one
    return (
        json.dumps({"$schema": "http://json-schema.org/draft-07/schema#", **made}, indent=1) + "\n"
    )


def readme_table() -> str:
    """Return the table of values as helm-docs writes it."""
    rows = ["| Key | Type | Default | Description |", "|-----|------|---------|-------------|"]
    for entry in entries(Chart, Chart()):
        if entry.section:
            continue
        value = plain(entry.default)
        text = json.dumps(value).replace("|", "\\|")
        about = entry.about.replace("|", "\\|")
        rows.append(f"| {'.'.join(entry.path)} | {_kind(value)} | `{text}` | {about} |")
    return "\n".join(rows) + "\n"


def _kind(value: Any) -> str:
    names = {bool: "bool", int: "int", str: "string", list: "list", dict: "object"}
    return names.get(type(value), "string")


def images(version: str) -> str:
    """Return every image that the chart can run, one a line, for a mirror."""
    chart = Chart()
    image, injector = chart.image, chart.injector
    cells = sorted({chart.cell, *(variant.cell for variant in chart.variants.values())})
    lines = [f"{injector.registry}/{injector.repository}:{version}"]
    lines += [f"{image.registry}/{image.repository}:{version}-{cell}" for cell in cells]
    return "\n".join(lines) + "\n"
