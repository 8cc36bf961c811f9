"""The web config file, as Prometheus' exporter-toolkit has it: TLS and basic auth, read, checked and followed."""

import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import yaml

from capture_canary.config.document import line, parse, read_file
from capture_canary.config.problems import ConfigError, Problem, nearest
from capture_canary.logging import get_logger

_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
"""Older ones are broken; exporter-toolkit would take them."""
_CLIENTS = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}
_HASH = re.compile(r"\$2[aby]\$([0-9]{2})\$[./A-Za-z0-9]{53}", re.ASCII)
MAX_COST = 14
"""Of a bcrypt hash: 14 takes about a second of a core for each wrong password."""
_LOOK_SECONDS = 1.0
_KEYS = {
    "tls_server_config": (
        *("cert_file", "key_file", "client_ca_file"),
        *("client_auth_type", "min_version", "max_version"),
    ),
    "http_server_config": ("http2",),
    "basic_auth_users": None,
}


class WebConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What the file asks for."""

    tls: ssl.SSLContext | None = None
    users: Mapping[str, bytes] = {}
    """bcrypt hashes by name; none: everybody may read."""
    files: tuple[Path, ...] = ()
    """What it was made of."""


def read(path: Path) -> WebConfig:
    """Read the file and those that it names.

    Raises:
        ConfigError: something of it cannot be used; names file, line and key.
    """
    file = read_file(path)
    node = parse(file)
    top = _Section(str(path), "", node, _KEYS) if node is not None else None
    if top is None:
        return WebConfig(files=(path,))
    tls = top.section("tls_server_config")
    context, files = _tls(tls, path.parent) if tls else (None, ())
    top.section("http_server_config")  # checked; we speak HTTP/1.1 whatever it says
    return WebConfig(tls=context, users=_users(top), files=(path, *files))


class Followed:
    """The file as it is now: looked at again when something comes in, at most each second."""

    def __init__(self, path: Path | None) -> None:
        """Read it for the first time.

        Raises:
            ConfigError: it cannot be used.
        """
        self._path = path
        self._now = read(path) if path else WebConfig()
        self._signs = _signs(self._now.files)
        self._next = 0.0

    def now(self) -> WebConfig:
        """Return what holds; a file that turned bad changes nothing, and is said once."""
        if self._path is not None and time.monotonic() >= self._next:
            self._next = time.monotonic() + _LOOK_SECONDS
            signs = _signs(self._now.files)
            if signs != self._signs:
                self._signs = signs
                self._reread(self._path)
        return self._now

    def _reread(self, path: Path) -> None:
        log = get_logger("web")
        try:
            self._now = read(path)
        except ConfigError as error:
            log.error("web_config_kept", why=str(error))  # noqa: TRY400 - the file is at fault, not we
        else:
            self._signs = _signs(self._now.files)
            log.info("web_config_reread", path=str(path))


def _signs(files: tuple[Path, ...]) -> list[tuple[int, ...] | None]:
    """What changes when a file does, or when a ConfigMap or Secret puts another in its place."""
    found: list[tuple[int, ...] | None] = []
    for file in files:
        try:
            status = file.stat()
        except OSError:
            found.append(None)
        else:
            found.append((status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size))
    return found


class _Section:
    """A mapping of the file, whose keys are known."""

    def __init__(
        self, file: str, name: str, node: yaml.Node, known: Mapping[str, Any] | tuple[str, ...]
    ) -> None:
        self.file, self.name = file, name
        self._number = line(node)
        if not isinstance(node, yaml.MappingNode):
            raise self.wrong("", "expects keys with values")
        self._values: dict[str, yaml.Node] = {}
        for key, value in node.value:
            word = str(key.value)
            if known and word not in known:
                raise ConfigError(
                    [
                        Problem(
                            f"{file}:{line(key)}",
                            f"unknown key {self._full(word)!r}{nearest(word, known)}",
                        )
                    ]
                )
            if word in self._values:
                raise ConfigError(
                    [Problem(f"{file}:{line(key)}", f"{self._full(word)} is there twice")]
                )
            self._values[word] = value

    def section(self, key: str) -> "_Section | None":
        """A mapping under a key; None where it is missing or empty."""
        node = self._values.get(key)
        if node is None or (isinstance(node, yaml.ScalarNode) and node.value in ("", "null", "~")):
            return None
        return _Section(self.file, key, node, _KEYS[key] or ())

    def text(self, key: str) -> str | None:
        """A text under a key."""
        node = self._values.get(key)
        if node is None:
            return None
        if not isinstance(node, yaml.ScalarNode):
            raise self.wrong(key, "expects a text")
        return str(node.value) or None

    def texts(self) -> Iterator[tuple[str, str]]:
        """All keys with their texts."""
        for key in self._values:
            yield key, self.text(key) or ""

    def wrong(self, key: str, what: str) -> ConfigError:
        """What is wrong with a key."""
        node = self._values.get(key) if key else None
        number = line(node) if node is not None else self._number
        return ConfigError([Problem(f"{self.file}:{number}", f"{self._full(key)} {what}".strip())])

    def _full(self, key: str) -> str:
        return ".".join(part for part in (self.name, key[:60]) if part)


def _tls(section: _Section, folder: Path) -> tuple[ssl.SSLContext, tuple[Path, ...]]:
    certificate, key = _file(section, "cert_file", folder), _file(section, "key_file", folder)
    for name, found in (("cert_file", certificate), ("key_file", key)):
        if found is None:
            raise section.wrong("", f"needs {name}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    context.minimum_version = _one_of(section, "min_version", _VERSIONS, "TLS12")
    if section.text("max_version"):
        context.maximum_version = _one_of(section, "max_version", _VERSIONS, "TLS13")
    try:
        context.load_cert_chain(certificate or "", key, password=lambda: b"")
    except (OSError, ssl.SSLError) as error:
        raise section.wrong("cert_file", f"and key_file cannot be used: {_why(error)}") from None
    authority = _file(section, "client_ca_file", folder)
    mode = _one_of(section, "client_auth_type", _CLIENTS, "NoClientCert")
    if authority is None and mode != ssl.CERT_NONE:
        raise section.wrong("client_auth_type", "needs client_ca_file")
    if authority is not None:
        if mode == ssl.CERT_NONE:
            raise section.wrong("client_ca_file", "says nothing without client_auth_type")
        _trust(section, context, authority)
    context.verify_mode = mode
    return context, tuple(file for file in (certificate, key, authority) if file)


def _trust(section: _Section, context: ssl.SSLContext, authority: Path) -> None:
    try:
        context.load_verify_locations(authority)
    except (OSError, ssl.SSLError) as error:
        raise section.wrong("client_ca_file", f"cannot be used: {_why(error)}") from None


def _file(section: _Section, key: str, folder: Path) -> Path | None:
    name = section.text(key)
    return None if name is None else folder / name


def _one_of(section: _Section, key: str, words: Mapping[str, Any], default: str) -> Any:
    word = section.text(key) or default
    if word not in words:
        raise section.wrong(key, f"is {word[:60]!r}; expects one of {', '.join(words)}")
    return words[word]


def _why(error: OSError) -> str:
    return getattr(error, "reason", None) or error.strerror or str(error)


def _users(top: _Section) -> Mapping[str, bytes]:
    section = top.section("basic_auth_users")
    if section is None:
        return {}
    users: dict[str, bytes] = {}
    for name, said in section.texts():
        found = _HASH.fullmatch(said)
        if found is None:
            raise section.wrong(
                name, "is no bcrypt hash ($2y$…); make one by `htpasswd -nBC 10 NAME`"
            )
        if not 4 <= int(found[1]) <= MAX_COST:  # noqa: PLR2004 - bcrypt's own least
            raise section.wrong(name, f"has the cost {int(found[1])}; expects 4 to {MAX_COST}")
        users[name] = said.encode()
    if users:
        checker(section.wrong)
    return users


def checker(wrong: Callable[[str, str], Exception]) -> ModuleType:
    """Return the bcrypt package, which is loaded only where there are users."""
    try:
        import bcrypt  # noqa: PLC0415
    except ImportError:
        raise wrong("", "needs the bcrypt package: pip install 'capture-canary[web]'") from None
    return bcrypt
