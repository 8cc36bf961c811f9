"""What a single text setting must look like: an address, a URL, a cron line, a list of faults to emulate."""

import ipaddress
import re
from urllib.parse import urlsplit

_PORTS = 65536
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


def split_listen(listen: str) -> tuple[str, int]:
    """Return host ("" for all addresses) and port of `HOST:PORT`, `[V6]:PORT` or `:PORT`.

    Raises:
        ValueError: it is none of these.
    """
    host, colon, port = listen.rpartition(":")
    if not colon or not re.fullmatch(r"[0-9]{1,5}", port) or int(port) >= _PORTS:
        raise ValueError("not HOST:PORT, [V6]:PORT or :PORT")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        ipaddress.IPv6Address(host)
    elif host and not _HOST.fullmatch(host):
        raise ValueError("its host is neither a name nor an address (a v6 address needs brackets)")
    return host, int(port)


def listen(value: str) -> None:
    """Accept what `split_listen` can split."""
    split_listen(value)


def url(value: str) -> None:
    """Accept an http(s) URL without credentials: settings are shown and logged."""
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or re.search(r"\s", value):
        raise ValueError("not an http or https URL")
    if parts.username is not None or parts.password is not None:
        raise ValueError("a URL with credentials, which `config show` and logs would repeat")
    _ = parts.port  # urlsplit refuses a bad port only when asked


def emulate(value: str) -> None:
    """Accept what can be emulated."""
    from capture_canary import emulate as emulation  # noqa: PLC0415  # only where something is emulated

    emulation.parse(value)


def cron(value: str) -> None:
    """Accept what the schedule can plan by."""
    # APScheduler is loaded only where a cron line is used: 1.5 MB that an interval does not need.
    from capture_canary.schedule import cron_trigger  # noqa: PLC0415

    cron_trigger(value)
