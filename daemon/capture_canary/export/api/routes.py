"""The routes of the API."""

from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from capture_canary.export.api import openapi
from capture_canary.export.api.answers import Problem
from capture_canary.export.api.operations import (
    OPERATIONS,
    NotFoundError,
    Operation,
    WrongParameterError,
)
from capture_canary.export.reader import Reader
from capture_canary.export.source import Source


def routes(source: Source, reader: Reader) -> list[Route]:
    """Return all routes of the API."""

    async def document(_: Request) -> Response:
        return _json(openapi.document(source.view().state.version))

    return [
        Route(f"{openapi.PREFIX}/openapi.json", document),
        *(
            Route(openapi.PREFIX + operation.path, partial(_answer, operation, source, reader))
            for operation in OPERATIONS
        ),
    ]


async def _answer(
    operation: Operation, source: Source, reader: Reader, request: Request
) -> Response:
    try:
        given = {
            one.name: one.read(
                request.path_params.get(one.name)
                if one.default is None
                else request.query_params.get(one.name)
            )
            for one in operation.parameters
        }
        return _json(await reader.run(lambda: msgspec.json.encode(operation.run(source, given))))
    except WrongParameterError as error:
        return _json(msgspec.json.encode(Problem(error=str(error))), 400)
    except NotFoundError as error:
        return _json(msgspec.json.encode(Problem(error=str(error))), 404)


def _json(body: bytes, status: int = 200) -> Response:
    return Response(
        body, status, media_type="application/json", headers={"cache-control": "no-store"}
    )
