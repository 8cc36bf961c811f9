"""The application: which path says what."""

import time
from collections.abc import Awaitable, Callable, Mapping

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from capture_canary.export import static
from capture_canary.export.api.routes import routes as api_routes
from capture_canary.export.auth import BasicAuth
from capture_canary.export.exposition import Exposition
from capture_canary.export.reader import Reader
from capture_canary.export.source import Source

Endpoint = Callable[[Request], Awaitable[Response]]
_YEAR = 31_536_000


def make_app(source: Source, *, users: Callable[[], Mapping[str, bytes]] = dict) -> ASGIApp:
    """Return the application.

    Args:
        source: what to show, asked at each request.
        users: bcrypt hashes by name, asked at each request; none: everybody may read.
    """
    reader = Reader()
    exposition = Exposition(source.view)

    async def metrics(request: Request) -> Response:
        body, content_type = exposition.scrape(request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type})

    async def healthz(_: Request) -> Response:
        # The loop's health, not a probe's: a sick NPU must not make the kubelet restart us.
        return _word(source.alive(), "ok", "late")

    async def readyz(_: Request) -> Response:
        return _word(source.ready() and source.alive(), "ready", "not ready")

    return _Guarded(
        BasicAuth(
            Starlette(
                routes=[
                    Route("/metrics", metrics),
                    Route("/healthz", healthz),
                    Route("/readyz", readyz),
                    Route("/", _page("status", source, reader)),
                    Route("/explain", _page("explain", source, reader)),
                    Route("/static/{name:path}", _static),
                    *api_routes(source, reader),
                ]
            ),
            users,
        )
    )


def _word(good: bool, yes: str, no: str) -> Response:  # noqa: FBT001 - good or not is the point
    return PlainTextResponse(f"{yes}\n") if good else PlainTextResponse(f"{no}\n", 503)


def _page(name: str, source: Source, reader: Reader) -> Endpoint:
    def make() -> str:
        # Loaded when somebody looks: most daemons are scraped, and never looked at.
        from capture_canary.export.pages import explain, frame, status  # noqa: PLC0415

        pages = {"status": status.page, "explain": explain.page}
        policy["content-security-policy"] = frame.POLICY
        return pages[name](source, now=time.time())

    policy = {"cache-control": "no-store"}

    async def page(_: Request) -> Response:
        return HTMLResponse(await reader.run(make), headers=policy)

    return page


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in static.FILES:
        return PlainTextResponse("not found\n", 404)
    kept = request.query_params.get("v") == static.version()
    return Response(
        static.text(name),
        media_type=static.FILES[name],
        headers={"cache-control": f"max-age={_YEAR}, immutable" if kept else "no-cache"},
    )


class _Guarded:
    """Adds what keeps a browser from doing more with an answer than showing it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["x-content-type-options"] = "nosniff"
                headers["referrer-policy"] = "no-referrer"
                headers.setdefault("content-security-policy", "default-src 'none'")
            await send(message)

        await self._app(scope, receive, guarded)
