"""Clients' connections: bounded in number and time, so that slow ones hold up nobody."""

import asyncio
import contextlib
import socket
import ssl
import time
from email.utils import formatdate

import msgspec
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a client may take; the section `web` of the settings."""

    connections: int = 64
    header_bytes: int = 16_384
    request_seconds: float = 10.0
    """For a request to be whole, answered, and the answer taken."""
    idle_seconds: float = 75.0


class Connections:
    """All connections, those that idle apart from those with a request.

    The newest always gets in: where there are too many, the one that idles longest goes, or else the one whose request
    takes longest. A thousand clients that do nothing so push out each other, and never a scrape.
    """

    def __init__(self, most: int) -> None:
        """Keep at most so many."""
        self._most = most
        self._idle: dict[Connection, None] = {}
        self._busy: dict[Connection, None] = {}

    def __len__(self) -> int:
        """How many there are."""
        return len(self._idle) + len(self._busy)

    def idle(self, one: "Connection") -> None:
        """It waits for a request; a new one is let in."""
        self.remove(one)
        if len(self) >= self._most:
            oldest = next(iter(self._idle or self._busy))
            self.remove(oldest)
            oldest.drop()
        self._idle[one] = None

    def busy(self, one: "Connection") -> None:
        """It has begun a request."""
        if self._idle.pop(one, one) is None:
            self._busy[one] = None

    def remove(self, one: "Connection") -> None:
        """It ended."""
        self._idle.pop(one, None)
        self._busy.pop(one, None)

    def drop_all(self) -> None:
        """End them all."""
        for one in [*self._idle, *self._busy]:
            one.drop()


class Connection(H11Protocol):
    """HTTP with a clock: uvicorn alone waits for ever for a request to be whole, and for its answer to be taken."""

    def __init__(
        self, config: uvicorn.Config, state: ServerState, limits: Limits, among: Connections
    ) -> None:
        """Begin with a client that has said nothing yet."""
        super().__init__(config, state, {})
        self._limits = limits
        self._among = among
        self._serving = False
        self._socket: socket.socket | None = None
        self._clock: asyncio.TimerHandle | None = None

    async def open(self, client: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Let the client in; with TLS its handshake comes first."""
        self._socket = client
        self._among.idle(self)
        self._set_clock(self._limits.request_seconds)
        try:
            await self.loop.connect_accepted_socket(
                lambda: self,
                client,
                ssl=tls,
                ssl_handshake_timeout=self._limits.request_seconds if tls else None,
            )
        except (OSError, asyncio.TimeoutError):  # it broke off, or is no TLS client
            self._forget()

    def drop(self) -> None:
        """End the connection now, whatever the client is at."""
        if self.transport is not None:
            self.transport.abort()
        elif self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)  # in its handshake, which so ends

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        if not self._serving:
            self._serving = True
            self._among.busy(self)
            self._set_clock(self._limits.request_seconds)
        now = formatdate(time.time(), usegmt=True).encode()
        self.server_state.default_headers = [(b"date", now)]
        super().data_received(data)

    def on_response_complete(self) -> None:
        """Wait for the next request, once the client has taken the answer."""
        super().on_response_complete()
        self._rest()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._forget()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()  # uvicorn leaves its timer, and so all of us, where the client reset it

    def _rest(self) -> bool:
        """Count as idle if nothing is under way."""
        if self.cycle is None or not self.cycle.response_complete:
            return False
        if self.transport.is_closing() or self.transport.get_write_buffer_size():
            return False
        self._serving = False
        self._among.idle(self)
        self._set_clock(self._limits.idle_seconds)
        return True

    def _set_clock(self, seconds: float) -> None:
        if self._clock is not None:
            self._clock.cancel()
        self._clock = self.loop.call_later(seconds, self._too_late)

    def _too_late(self) -> None:
        if not (self._serving and self._rest()):
            self.drop()

    def _forget(self) -> None:
        self._among.remove(self)
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None
