"""A child process that builds one image: a Job on standard input, Events on standard output.

A process of its own, since that is what can be ended: the Engine gives up a build whose connection closes, and the
SDK has no other way to close one.
"""

import ctypes
import hashlib
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from capture_canary.images.engine import EngineError, connect, explain, refused
from capture_canary.images.job import BUILT_FROM, LOCAL, Event, Job
from capture_canary.stack.npus import printable

_PR_SET_PDEATHSIG = 1  # <sys/prctl.h>
_STEP = re.compile(r"Step ([0-9]{1,4})/([0-9]{1,4}) : (.{1,200})")


def main() -> int:
    """Build, and tell of it; return 0, or 1 where it failed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=Job)
    try:
        for event in build(connect(), job):
            _tell(event)
    except EngineError as error:
        _tell(Event(kind="failed", text=str(error)))
        return 1
    except Exception as error:  # noqa: BLE001  # the SDK lets some of requests' through
        _tell(Event(kind="failed", text=explain(error)))
        return 1
    return 0


def build(client: Any, job: Job) -> Iterator[Event]:
    """Pull what is missing, build unless it is there, and yield how it goes.

    Raises:
        EngineError: it could not be built.
    """
    bases = {}
    for name in job.bases:
        yield from _pull(client, name, again=job.pull)
        bases[name] = client.api.inspect_image(name)
    arguments = job.arguments | _pins(bases, job)
    made_of = [
        job.context_digest,
        job.target,
        *(base["Id"] for base in bases.values()),
        sorted(arguments.items()),
    ]
    built_from = hashlib.sha256(repr(made_of).encode()).hexdigest()
    if not job.force and _label(client, job.tag) == built_from:
        yield Event(kind="kept", text=job.tag)
        return
    with Path(job.context).open("rb") as context:
        stream = client.api.build(
            fileobj=context,
            custom_context=True,
            dockerfile=job.dockerfile,
            tag=job.tag,
            target=job.target or "",
            buildargs=arguments,
            labels={BUILT_FROM: built_from},
            network_mode=job.network,
            rm=True,
            forcerm=True,
            decode=True,
        )
        for said in stream:
            yield from _understood(said)
    yield Event(kind="built", text=str(client.api.inspect_image(job.tag)["Id"]))


def _understood(said: dict[str, Any]) -> Iterator[Event]:
    refused(said)
    for line in str(said.get("stream", "")).splitlines():
        match = _STEP.match(line)
        if match:
            part, whole = int(match[1]), int(match[2])
            yield Event(kind="step", text=printable(match[3], 200), part=part, whole=whole)
        elif line.strip():
            yield Event(kind="log", text=printable(line.rstrip(), 1000))


def _pull(client: Any, name: str, *, again: bool) -> Iterator[Event]:
    here = _here(client, name)
    if here and not (again and not name.startswith(LOCAL)):
        return
    if name.startswith(LOCAL):
        raise EngineError(
            f"{name} is made here, and is not there: `capture-canary images standins`"
        )
    repository, tag = _parts(name)
    done: dict[str, int] = {}
    whole: dict[str, int] = {}
    try:
        for said in client.api.pull(repository, tag=tag, stream=True, decode=True):
            refused(said)
            detail = said.get("progressDetail") or {}
            if said.get("status") == "Downloading" and "total" in detail:
                done[said["id"]], whole[said["id"]] = detail["current"], detail["total"]
                part = sum(done.values())
                yield Event(
                    kind="pull", text=f"pulling {name}", part=part, whole=sum(whole.values())
                )
    except Exception as error:
        raise EngineError(f"{name} can't be pulled: {explain(error)}") from error


def _parts(name: str) -> tuple[str, str]:
    """Return an image's repository, and what to pull of it: its digest where it has one, else its tag."""
    tagged, _, digest = name.partition("@")
    repository, _, tag = tagged.rpartition(":")
    return repository, digest or tag


def _here(client: Any, name: str) -> bool:
    from docker import errors  # noqa: PLC0415  # an extra

    try:
        client.api.inspect_image(name)
    except errors.ImageNotFound:
        return False
    return True


def _pins(bases: dict[str, Any], job: Job) -> dict[str, str]:
    """Return what FROM is to name by digest: the label then says what was built on, though a tag moves meanwhile."""
    pins = {name: pinned(name, image) for name, image in bases.items()}
    by_digest = {
        key: pins[job.arguments[key]] for key in ("BUILDER", "BASE") if key in job.arguments
    }
    last = job.bases[-1]
    return by_digest | {"BASE_DIGEST": pins[last].partition("@")[2] or str(bases[last]["Id"])}


def pinned(name: str, image: dict[str, Any]) -> str:
    """Return an image's name by the digest that its registry knows it by; one that is in no registry keeps its name."""
    repository, _ = _parts(name)
    short = repository.removeprefix("docker.io/").removeprefix(
        "library/"
    )  # as the Engine spells it
    for known in image.get("RepoDigests") or []:
        if str(known).partition("@")[0] in (repository, short):
            return f"{repository}@{str(known).partition('@')[2]}"
    return name


def _label(client: Any, tag: str) -> str | None:
    if not _here(client, tag):
        return None
    labels = client.api.inspect_image(tag)["Config"].get("Labels") or {}
    found = labels.get(BUILT_FROM)
    return str(found) if found else None


def _tell(event: Event) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(event) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
