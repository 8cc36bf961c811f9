"""The HTTP server: /metrics, /healthz and a plain page that says the verdict in words."""

import asyncio
import html
import socket
import threading
from collections.abc import Callable

import uvicorn
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from capture_canary.export.metrics import StateCollector
from capture_canary.export.state import State
from capture_canary.model import Report
from capture_canary.trend.advice import remedy

MAX_CONNECTIONS = 32
"""Answered at a time: Prometheus in pairs, a kubelet, some people."""
MAX_HEADERS = 8192
"""Bytes of a request before it must be whole."""
IDLE_SECONDS = 10
"""For a request to be whole, and between two: a client that dawdles loses its connection, not others theirs."""
START_SECONDS = 30

_PAGE = """<!doctype html><meta charset="utf-8"><title>Capture Canary</title>
<h1>Capture Canary{emulated}</h1>
{verdicts}
<p><a href="metrics">Metrics</a> · version {version}</p>
"""


class NotServingError(RuntimeError):
    """The server could not be started."""


def make_app(state: Callable[[], State], *, alive: Callable[[], bool]) -> Starlette:
    """Return the application.

    Args:
        state: what to show, asked for at each request.
        alive: whether the daemon's loop is on time. A probe's result is no part of it: a sick NPU must not make the
            kubelet restart us.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(StateCollector(state))

    async def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": content_type})

    async def healthz(_: Request) -> Response:
        return (
            PlainTextResponse("ok\n") if alive() else PlainTextResponse("late\n", status_code=503)
        )

    async def page(_: Request) -> Response:
        return HTMLResponse(_page(state()))

    return Starlette(
        routes=[Route("/metrics", metrics), Route("/healthz", healthz), Route("/", page)]
    )


class Server:
    """A server in a thread of its own."""

    def __init__(self, app: Starlette, *, host: str, port: int) -> None:
        """Prepare to serve; port 0 takes a free one."""
        config = uvicorn.Config(
            app,
            host=host,
            port=port,
            http=_Protocol,
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=MAX_CONNECTIONS,
            h11_max_incomplete_event_size=MAX_HEADERS,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=1,
        )
        self._server = _Quiet(config)
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)
        self._where = f"{host}:{port}"

    @property
    def port(self) -> int:
        """The port in use."""
        port: int = self._server.servers[0].sockets[0].getsockname()[1]
        return port

    def start(self) -> None:
        """Serve from now on.

        Raises:
            NotServingError: the address cannot be used.
        """
        self._thread.start()
        if not self._server.ready.wait(START_SECONDS) or not self._server.started:
            raise NotServingError(
                f"cannot listen on {self._where}: is the port taken, the address ours?"
            )

    def stop(self) -> None:
        """Stop serving; requests under way get a second."""
        self._server.should_exit = True
        self._thread.join()

    def _run(self) -> None:
        try:
            self._server.run()
        except SystemExit:  # uvicorn's way to say that it cannot listen
            pass
        finally:
            self._server.ready.set()


class _Quiet(uvicorn.Server):
    """A server that tells when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


class _Protocol(H11Protocol):
    """HTTP whose clients must send a whole request in time; uvicorn alone waits for one for ever."""

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_request()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._patience is not None:
            self._patience.cancel()
        super().connection_lost(exc)

    def _await_request(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
        self._patience = self.loop.call_later(IDLE_SECONDS, self._dawdled)

    def _dawdled(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.abort()


def _page(state: State) -> str:
    verdicts = [_section(evidence, state.reports.get(evidence)) for evidence in state.sources]
    return _PAGE.format(
        emulated=" — emulated: no word of this is about real hardware" if state.emulated else "",
        verdicts="\n".join(verdicts),
        version=html.escape(state.version),
    )


def _section(evidence: str, report: Report | None) -> str:
    if report is None:
        return f"<h2>{evidence}: unknown</h2><p>Nothing was measured yet.</p>"
    soc = report.stack["soc"].value if "soc" in report.stack else None
    advice = remedy(report, soc=soc, mode=report.mode)
    cause = f" ({report.cause})" if report.cause else ""
    return (
        f"<h2>{evidence}: {html.escape(report.verdict + cause)}</h2>"
        f"<p>{html.escape(report.reason)}.</p><p>{html.escape(advice)}</p>"
    )
