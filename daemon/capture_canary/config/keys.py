"""The keys of the model, one by one: how each is read from text, shown, and described."""

import re
import typing
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from capture_canary.config.model import Config
from capture_canary.config.units import DURATION_PATTERN, SIZE_PATTERN, Duration, Size

Raw = str | list[str] | None
"""A value as a file, the environment or a flag gives it: the model says what type it has."""

_MAX_SHOWN = 60


class Key(NamedTuple):
    """A setting that is no section."""

    name: str
    """Dotted, such as `probe.interval`."""
    annotation: Any
    meta: msgspec.Meta
    default: Any

    @property
    def base(self) -> Any:
        """Its type, without metadata and without None."""
        return next(kind for kind in _choices(self.annotation) if kind is not NoneType)

    @property
    def optional(self) -> bool:
        """Whether null is a value of it."""
        return NoneType in _choices(self.annotation)

    @property
    def is_list(self) -> bool:
        """Whether it takes several values."""
        return typing.get_origin(self.base) is tuple

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return "CAPTURE_CANARY_" + self.name.replace(".", "__").upper()

    @property
    def restart(self) -> bool:
        """Whether a change of it needs a restart."""
        return bool(self._extra("restart"))

    @property
    def expects(self) -> str:
        """What a value must be, in words."""
        own = self._extra("expects")
        return own or _expects(self.base, self.meta)

    def read(self, raw: Raw) -> Any:
        """Return the value.

        Raises:
            ValueError: the text is no value of this key; says why.
        """
        if raw is None:
            if not self.optional:
                raise ValueError(f"has no value; expects {self.expects}")
            return None
        wrong = f"{shown(raw)} is not {self.expects}"
        if isinstance(raw, list) != self.is_list:
            raise ValueError(wrong)
        try:
            value = msgspec.convert(raw, self.annotation, strict=False, dec_hook=_decode)
        except msgspec.ValidationError:  # speaks of Python's types: `expects` says it better
            raise ValueError(wrong) from None
        try:
            self._check(value)
        except ValueError as error:
            raise ValueError(f"{wrong}: {error}") from None
        return value

    def text(self, value: Any) -> str:
        """Return a value as the environment would give it."""
        if value is None:
            return "null"
        if isinstance(value, tuple):
            return ",".join(map(str, value))
        return str(value).lower() if isinstance(value, bool) else str(value)

    def plain(self, value: Any) -> Any:
        """Return a value as JSON has it."""
        return msgspec.to_builtins(value, enc_hook=str)

    def _extra(self, name: str) -> Any:
        return (self.meta.extra or {}).get(name)

    def _check(self, value: Any) -> None:
        least, most, check = (self._extra(name) for name in ("least", "most", "check"))
        parse = getattr(self.base, "parse", None)
        if parse and least and value < parse(least):
            raise ValueError("too little")
        if parse and most and value > parse(most):
            raise ValueError("too much")
        if check and value is not None:
            check(value)
        if isinstance(value, tuple) and len(set(value)) < len(value):
            raise ValueError("an item is there twice")


def shown(raw: Raw) -> str:
    """Return a foreign value as an error may quote it: short, one line, printable, no credentials."""
    text = re.sub(r"//[^/\s]*@", "//***@", ascii(raw))
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"


@cache
def keys() -> Mapping[str, Key]:
    """Return all keys by their dotted names, in the order of the model."""
    return {key.name: key for key in _walk(Config, "")}


@cache
def sections() -> Mapping[str, type[msgspec.Struct]]:
    """Return the model's sections by name."""
    hints = typing.get_type_hints(Config)
    return {name: kind for name, kind in hints.items() if _is_section(kind)}


def build(values: Mapping[str, Any]) -> Config:
    """Return the settings with these values by dotted names, and defaults for the rest."""
    nested: dict[str, dict[str, Any]] = {section: {} for section in sections()}
    top: dict[str, Any] = {}
    for name, value in values.items():
        section, _, rest = name.rpartition(".")
        (nested[section] if section else top)[rest] = value
    for name, kind in sections().items():
        top[name] = kind(**nested[name])
    return Config(**top)


def value_of(config: Config, name: str) -> Any:
    """Return the value of a dotted name."""
    value: Any = config
    for part in name.split("."):
        value = getattr(value, part)
    return value


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the configuration file."""
    made = msgspec.json.schema(Config, schema_hook=_schema)
    for key in keys().values():
        section, _, name = key.name.rpartition(".")
        struct = sections()[section].__name__ if section else Config.__name__
        entry = made["$defs"][struct]["properties"][name]
        entry["default"] = key.plain(key.default)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def _walk(struct: type[msgspec.Struct], prefix: str) -> list[Key]:
    hints = typing.get_type_hints(struct, include_extras=True)
    found: list[Key] = []
    for field in msgspec.structs.fields(struct):
        kind, meta = typing.get_args(hints[field.name])
        if _is_section(kind):
            found += _walk(kind, f"{field.name}.")
            continue
        made = field.default_factory
        default = field.default if made is msgspec.NODEFAULT else made()
        found.append(Key(prefix + field.name, Annotated[kind, meta], meta, default))
    return found


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _choices(annotation: Any) -> tuple[Any, ...]:
    kind = typing.get_args(annotation)[0]
    if typing.get_origin(kind) in (Literal, tuple):
        return (kind,)
    return typing.get_args(kind) or (kind,)


def _decode(kind: type, value: Any) -> Any:
    if kind is Path:
        if not value.startswith("/") or "\0" in value:
            raise ValueError("it does not start with /")
        return Path(value)
    if kind in (Duration, Size):
        return kind.parse(value)
    raise ValueError(f"{kind.__name__} is no type of a setting")


def _schema(kind: type) -> dict[str, Any]:
    patterns = {Duration: DURATION_PATTERN, Size: SIZE_PATTERN, Path: "^/"}
    return {"type": "string", "pattern": patterns[kind]}


def _expects(base: Any, meta: msgspec.Meta) -> str:
    if typing.get_origin(base) is tuple:
        item = typing.get_args(base)[0]
        if typing.get_origin(item) is Annotated:
            return f"a list, each {_expects(*typing.get_args(item))}"
        return f"a list, each {_expects(item, msgspec.Meta())}"
    if typing.get_origin(base) is Literal:
        return f"one of {', '.join(typing.get_args(base))}"
    extra = meta.extra or {}
    words = {
        bool: "true or false",
        str: "text",
        Path: "an absolute path",
        int: f"a whole number from {meta.ge} to {meta.le}",
        float: f"a number from {meta.ge} to {meta.le}",
        Duration: f"a duration from {extra.get('least') or '0s'} to {extra.get('most')}",
        Size: f"a size from {extra.get('least') or '0B'} to {extra.get('most')}",
    }
    return words[base]
