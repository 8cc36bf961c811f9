"""Run one of our commands in an image: bounded, shut in, and its container removed whatever happens."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from capture_canary import foreign
from capture_canary.images.share import Share
from capture_canary.stack.npus import printable

LABEL = "io.capture-canary.lock"
"""On every container of ours; its value is the lock that was held when it was made."""
MAX_OUTPUT = 16 << 20
MAX_ERRORS = 64 << 10
MEMORY = "4g"
"""A probe's ranks take some 100 MB each on an NPU."""
_PROCESSES = 1024
_SCRATCH = "/tmp"  # noqa: S108  # the container's own
_SHARED_MEMORY = "1g"
"""HCCL's ranks meet in shared memory; Docker's own 64 MB are too few for eight of them."""
_END_SECONDS = 10.0

Answer = TypeVar("Answer")


class RunError(Exception):
    """The command did not give a usable answer; the message says why."""


class NotRemovedError(RunError):
    """The container could not be removed: what it holds of this node is still held."""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a command that ended by itself."""

    code: int
    output: bytes
    errors: str
    """The end of what it wrote to standard error, printable."""


def run(
    client: Any,
    image: str,
    argv: Sequence[str],
    *,
    deadline: float,
    lock: str,
    share: Share | None = None,
    environ: Mapping[str, str] | None = None,
    entrypoint: Sequence[str] | None = None,
    memory: str = MEMORY,
    limit: int = MAX_OUTPUT,
    on_errors: Callable[[bytes], None] = lambda _data: None,
) -> Ran:
    """Run `argv` behind the image's entry point, or behind another.

    The container has no network, no capabilities, a read-only root, and of the node only what `share` says.

    Args:
        client: a `docker.DockerClient`.
        image: a local image; nothing is pulled.
        argv: words of one of our commands, such as `probe --json`.
        deadline: seconds until the container is removed although it runs.
        lock: path of the node's lock, which the caller holds: what an earlier holder of it left is removed first.
        share: what of the node it is given.
        environ: variables beside the image's.
        entrypoint: what to run in place of the image's entry point.
        memory: what it may take, as Docker spells sizes.
        limit: bytes it may print.
        on_errors: gets what it writes to standard error while it runs, in a thread of its own.

    Raises:
        NotRemovedError: the container is still there.
        RunError: there is no such image, it could not be started, took too long or printed too much.
    """
    from docker import errors  # noqa: PLC0415  # an extra

    try:
        remove_leftovers(client, lock)
        with _container(
            client,
            image=image,
            command=list(argv),
            environment={"HOME": _SCRATCH, **(environ or {})},
            entrypoint=list(entrypoint) if entrypoint else None,
            labels={LABEL: lock},
            host_config=_host_config(client, share or Share(), memory),
        ) as attached:
            return attached.wait(deadline, limit, on_errors)
    except errors.ImageNotFound:
        raise RunError(f"there is no image {image} here: pull or build it") from None
    except (errors.DockerException, OSError) as error:
        raise RunError(f"{image}: {_said(error)}") from error


def answer(ran: Ran, kind: type[Answer]) -> Answer:
    """Return what a command printed as JSON; an image may print anything.

    Raises:
        RunError: it is no such object.
    """
    try:
        return foreign.decode(ran.output, kind)
    except ValueError as error:
        said = ran.errors or printable(ran.output[-500:].decode("utf-8", "replace"), 200)
        raise RunError(
            f"exit code {ran.code}, and no answer ({printable(str(error), 200)}); it said: {said!r}"
        ) from None


def remove_leftovers(client: Any, lock: str) -> None:
    """Remove containers of ours made under this lock. Who holds it now knows that whoever made them is gone."""
    for left in client.api.containers(all=True, filters={"label": f"{LABEL}={lock}"}):
        _remove(client, left["Id"])


def _host_config(client: Any, share: Share, memory: str) -> Any:
    return client.api.create_host_config(
        network_mode="none",
        read_only=True,
        tmpfs={_SCRATCH: "rw,exec,nosuid,nodev,size=1g,mode=1777"},  # torch loads what it compiles
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        devices=[f"{path}:{path}:rw" for path in share.devices],
        binds=[f"{path}:{path}:ro" for path in share.mounts],
        group_add=[str(group) for group in share.groups],
        mem_limit=memory,
        pids_limit=_PROCESSES,
        shm_size=_SHARED_MEMORY,
        log_config={
            "Type": "none"
        },  # we read along; nothing it prints is to fill the engine's disk
    )


@contextlib.contextmanager
def _container(client: Any, **settings: Any) -> Iterator["_Attached"]:
    """Have a container that was made and not started; end and remove it whatever happens."""
    number = client.api.create_container(**settings)["Id"]
    attached: _Attached | None = None
    try:
        attached = _Attached(client, number)
        yield attached
    finally:
        try:
            _remove(client, number)
        finally:
            if attached is not None:
                attached.close()


class _Attached:
    """A container whose output is read by a thread of its own: an engine that hangs must not hang us."""

    def __init__(self, client: Any, number: str) -> None:
        self._api = client.api
        self._number = number
        self._limit = 0
        self._output = bytearray()
        self._errors = bytearray()
        self._failure: Exception | None = None
        self._on_errors: Callable[[bytes], None] = lambda _data: None
        self._socket = self._api.attach_socket(number, {"stdout": 1, "stderr": 1, "stream": 1})
        self._reader = threading.Thread(target=self._read, daemon=True)

    def wait(self, deadline: float, limit: int, on_errors: Callable[[bytes], None]) -> Ran:
        self._limit = limit
        self._on_errors = on_errors
        self._reader.start()
        self._api.start(self._number)
        self._reader.join(deadline)
        if self._reader.is_alive():
            raise RunError(f"not done in {deadline:g} s")
        if len(self._output) > limit:
            raise RunError(f"printed over {limit} bytes")
        if self._failure is not None:
            raise RunError(_said(self._failure)) from self._failure
        code = int(self._api.wait(self._number, timeout=_END_SECONDS)["StatusCode"])
        last = printable(self._errors.decode("utf-8", "replace").strip().rpartition("\n")[2], 300)
        return Ran(code=code, output=bytes(self._output), errors=last)

    def close(self) -> None:
        """Let go of the connection, once the container's end has ended the reader."""
        if self._reader.ident is not None:
            self._reader.join(_END_SECONDS)
        below = getattr(
            self._socket, "_sock", None
        )  # which the SDK leaves open beneath what it hands out
        for one in (self._socket, below):
            if one is not None:
                with contextlib.suppress(OSError):  # the engine closed it
                    one.close()

    def _read(self) -> None:
        from docker.utils.socket import STDERR, frames_iter  # noqa: PLC0415  # an extra

        try:
            for stream, data in frames_iter(self._socket, tty=False):
                if stream == STDERR:
                    self._errors = (self._errors + data)[-MAX_ERRORS:]
                    self._on_errors(data)
                    continue
                self._output += data
                if len(self._output) > self._limit:
                    return
        except Exception as error:  # noqa: BLE001  # the engine may end it in many ways; told by whoever waits
            self._failure = error


def _remove(client: Any, number: str) -> None:
    from docker import errors  # noqa: PLC0415  # an extra

    try:
        with contextlib.suppress(errors.NotFound):
            client.api.remove_container(number, v=True, force=True)
    except (errors.DockerException, OSError) as error:
        raise NotRemovedError(
            f"container {number[:12]} could not be removed: {_said(error)}"
        ) from error


def _said(error: Exception) -> str:
    """What the engine says of it; its own words where it has some."""
    return printable(str(getattr(error, "explanation", None) or error), 300)
