"""The Docker Engine: found, new enough, and its failures in words that say what to do."""

import os
import re
import shutil
import socket
from pathlib import Path
from typing import Any, Final

from capture_canary.stack.npus import printable

OLDEST: Final = "1.41"
"""The Engine API that is needed: Docker 20.10's."""
TIMEOUT: Final = 60.0
"""Seconds that the Engine may take for an answer, other than for a build or a pull."""
_SOCKET = "unix:///var/run/docker.sock"


class EngineError(Exception):
    """The Docker Engine can't be used, or said no; the message says what to do."""


def connect(timeout: float = TIMEOUT) -> Any:
    """Return a `docker.DockerClient` of the Engine that DOCKER_HOST names, else of this host.

    Raises:
        EngineError: there is no SDK, no Engine, an old one, or one that does not answer.
    """
    try:
        import docker  # noqa: PLC0415  # an extra
    except ImportError:
        raise EngineError(
            "Docker's SDK is not installed: pip install 'capture-canary[images]'"
        ) from None
    try:
        _reach(timeout)
        version = _version(docker, timeout)
        found = str(version.get("ApiVersion"))
        if _number(found) >= _number(OLDEST):
            return docker.DockerClient(address(), version=found, timeout=timeout)
    except Exception as error:  # the SDK lets some of requests' through
        raise EngineError(explain(error)) from error
    raise EngineError(
        f"the Docker Engine at {address()} is too old: 20.10 or newer is needed, "
        f"this is {printable(str(version.get('Version')), 40)}"
    )


def _reach(timeout: float) -> None:
    """Try a socket first: the SDK leaves one open where it can't be connected to."""
    scheme, _, path = address().partition("://")
    if scheme == "unix":
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(timeout)
            probe.connect(path)


def _version(docker: Any, timeout: float) -> dict[str, Any]:
    """Ask without a version in the address, which an Engine of any age answers."""
    client = docker.DockerClient(address(), version=OLDEST, timeout=timeout)
    try:
        answer: dict[str, Any] = client.api.version(api_version=False)
        return answer
    finally:
        client.close()


def address() -> str:
    """Return where the Engine is looked for."""
    return printable(os.environ.get("DOCKER_HOST") or _SOCKET, 200)


_WORDS: Final = (
    (r"Permission ?[Dd]enied|PermissionError", "may not be used by this user: be in the group docker, or root"),
    (r"[Nn]o space left on device|ENOSPC", "is out of disk: see `docker system df`"),
    (r"ReadTimeout|[Rr]ead timed out|timed out", "did not answer in time: it hangs, or its disk is slow"),
    (r"client version .* too (old|new)|minimum supported API", "speaks another API: 20.10 or newer is needed"),
    (r"FileNotFoundError|[Cc]onnection ?[Rr]efused|No such file|NameResolution", "is not there: start it, or name another by DOCKER_HOST"),
    (r"ConnectionError|Connection (aborted|reset)|RemoteDisconnected|ProtocolError", "ended the connection: it was stopped, or crashed"),
)  # fmt: skip
"""What the SDK's errors mean. It, requests and urllib3 wrap few causes in many classes; their words are what is stable."""


def explain(error: BaseException) -> str:
    """Return what an error of the SDK means, with what to do about the ones that everybody meets."""
    said = printable(str(getattr(error, "explanation", None) or error), 600)
    chain = f"{type(error).__name__} {said} {error.__cause__!r} {error.__context__!r}"
    for pattern, words in _WORDS:
        if re.search(pattern, chain):
            return f"the Docker Engine at {address()} {words} ({said})"
    return said


def refused(said: dict[str, Any]) -> None:
    """Raise what the Engine says in a stream of events where that is an error.

    Raises:
        EngineError: it is.
    """
    if "error" in said:
        raise EngineError(explain(EngineError(str(said["error"]))))


def free_bytes(client: Any) -> int | None:
    """Return what is free where the Engine keeps its images; None where that is not on this machine."""
    root = client.info().get("DockerRootDir")
    if not root or not address().startswith("unix://") or not Path(root).is_dir():
        return None
    return shutil.disk_usage(root).free


def _number(version: object) -> tuple[int, ...]:
    parts = str(version).split(".")
    return tuple(int(part) for part in parts if part.isdecimal())
