"""`capture-canary health`: ask the daemon beside us whether its loop runs; what a container's HEALTHCHECK calls."""

import argparse
import http.client
import os
import ssl
import sys
from typing import Final

from capture_canary.commands.config import add_settings, flags_of
from capture_canary.config import ConfigError, find_config, load
from capture_canary.config.checks import split_listen
from capture_canary.exits import USAGE

SICK: Final = 1
"""As HEALTHCHECK wants it."""
_EVERYWHERE: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # nothing is bound here
_TIMEOUT: Final = 4.0
"""Seconds; less than the HEALTHCHECK's own, so that a reason is told."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options: what says where the daemon listens."""
    add_settings(parser)


def run(args: argparse.Namespace) -> int:
    """Ask; return 0, or 1 where it does not answer that it is well."""
    try:
        config = load(find_config(args.config, os.environ), os.environ, flags_of(args)).config
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return USAGE
    host, port = split_listen(config.listen)
    where = (_EVERYWHERE.get(host, host), port)
    failures = []
    for connection in _connections(*where, tls=config.web.config_file is not None):
        try:
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            said = answer.read(200).decode("utf-8", "replace").strip()
        except (OSError, http.client.HTTPException) as error:
            failures.append(str(error) or type(error).__name__)
            continue
        finally:
            connection.close()
        sys.stdout.write(f"{answer.status} {said}\n")
        return 0 if answer.status == http.client.OK else SICK
    sys.stderr.write(f"capture-canary health: {where[0]}:{port}: {'; '.join(failures)}\n")
    return SICK


def _connections(host: str, port: int, *, tls: bool) -> list[http.client.HTTPConnection]:
    """Return what to try: with a web config file TLS first, without a check of whose certificate it is: ours."""
    plain = http.client.HTTPConnection(host, port, timeout=_TIMEOUT)
    if not tls:
        return [plain]
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return [http.client.HTTPSConnection(host, port, timeout=_TIMEOUT, context=context), plain]
