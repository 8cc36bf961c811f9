"""The HTTP server: a thread with a loop of its own, that accepts, bounds and answers."""

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from capture_canary.export.connections import Connection, Connections, Limits
from capture_canary.logging import get_logger

_BACKLOG = 1024
"""Clients that the kernel keeps for us while we are at another."""
_LINGER_SECONDS = 1.0
"""For answers under way at the end."""
_RETRY_SECONDS = 0.2
"""After the process ran out of file descriptors."""


class NotServingError(RuntimeError):
    """The server could not be started."""


class Server:
    """Serves an application at an address.

    uvicorn brings the protocol; its own server would poll ten times a second, and count no client whose TLS handshake
    is not done.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        host: str,
        port: int,
        limits: Limits | None = None,
        tls: Callable[[], ssl.SSLContext | None] = lambda: None,
    ) -> None:
        """Prepare to serve.

        Args:
            app: what to serve.
            host: an address or name; empty for all addresses.
            port: 0 takes a free one.
            limits: what clients may take.
            tls: asked for each connection, so that a new certificate needs no restart.
        """
        self._limits = limits or Limits()
        self._config = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",  # what a client does wrong is not for our log: anybody could fill it
            access_log=False,
            proxy_headers=False,
            h11_max_incomplete_event_size=self._limits.header_bytes,
            timeout_keep_alive=2**31,  # `Connection` has its own clock
        )
        self._host, self._port, self._tls = host, port, tls
        self._state = ServerState()
        self._among = Connections(self._limits.connections)
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._opening: set[asyncio.Task[None]] = set()
        self._ready = threading.Event()

    @property
    def port(self) -> int:
        """The port in use."""
        return self._port

    @property
    def connections(self) -> Connections:
        """Who is connected."""
        return self._among

    def start(self) -> None:
        """Serve from now on.

        Raises:
            NotServingError: the address cannot be used.
        """
        try:
            listening = _listen(self._host, self._port)
        except OSError as error:
            where = f"{self._host}:{self._port}"
            raise NotServingError(f"cannot listen on {where}: {error.strerror or error}") from error
        self._port = listening.getsockname()[1]
        self._config.load()
        self._thread = threading.Thread(
            target=asyncio.run, args=(self._serve(listening),), name="http", daemon=True
        )
        self._thread.start()
        self._ready.wait()

    def stop(self) -> None:
        """Stop serving; requests under way get a second."""
        if self._thread is None or self._loop is None or self._stopping is None:
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    async def _serve(self, listening: socket.socket) -> None:
        loop = self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        loop.add_reader(listening, self._accept, listening)
        self._ready.set()
        await self._stopping.wait()
        loop.remove_reader(listening)
        listening.close()
        for one in list(self._state.connections):
            one.shutdown()
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=_LINGER_SECONDS)
        self._among.drop_all()
        if self._opening:
            await asyncio.wait(self._opening, timeout=_LINGER_SECONDS)
        deadline = loop.time() + _LINGER_SECONDS
        while (self._among or self._state.connections) and loop.time() < deadline:  # noqa: ASYNC110 - once, at the end
            await asyncio.sleep(_LINGER_SECONDS / 100)  # until each has closed its socket

    def _accept(self, listening: socket.socket) -> None:
        """Let one client in."""
        loop = asyncio.get_running_loop()
        try:
            client, _ = listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # it went away meanwhile
        except OSError as error:  # we have no descriptor left
            get_logger("web").warning("not_accepted", why=str(error))
            loop.remove_reader(listening)
            loop.call_later(_RETRY_SECONDS, self._accept_again, listening)
            return
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        one = Connection(self._config, self._state, self._limits, self._among)
        opening = loop.create_task(one.open(client, self._tls()))
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)

    def _accept_again(self, listening: socket.socket) -> None:
        if listening.fileno() >= 0:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; without a host on all addresses, of both families where there are both."""
    if not host and socket.has_dualstack_ipv6():
        with contextlib.suppress(OSError):
            return _ready(
                socket.create_server(
                    ("", port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True
                )
            )
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = found[0]
    return _ready(socket.create_server(address[:2], family=family, backlog=_BACKLOG))


def _ready(listening: socket.socket) -> socket.socket:
    listening.setblocking(False)
    return listening
