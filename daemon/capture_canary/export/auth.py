"""Basic auth in front of an application: bounded work for wrong passwords, none for one that was right before."""

import asyncio
import base64
import binascii
import hashlib
import hmac
import importlib
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""A kubelet has no password, and reads here nothing but ok or late."""
_REMEMBERED = 128
MAX_WAITING = 8
"""Passwords that may wait to be checked; further ones are sent away."""
_BCRYPT_BYTES = 72
"""bcrypt looks at no more of a password."""


class BasicAuth:
    """Lets requests through that name a user and the password."""

    def __init__(self, app: ASGIApp, users: Callable[[], Mapping[str, bytes]]) -> None:
        """Stand before `app`; `users` gives bcrypt hashes by name, none for an open door."""
        self._app = app
        self._users = users
        self._key = secrets.token_bytes(32)
        self._good: OrderedDict[bytes, None] = OrderedDict()
        self._bad: OrderedDict[bytes, None] = OrderedDict()
        self._waiting = 0
        self._worker: ThreadPoolExecutor | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or have the application answer."""
        users = self._users()
        if not users or scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        given = credentials(Headers(scope=scope).get("authorization", ""))
        allowed = await self._allowed(users, *given) if given else False
        if allowed:
            await self._app(scope, receive, send)
        elif allowed is None:
            await PlainTextResponse("too many passwords to check\n", 503, {"retry-after": "1"})(
                scope, receive, send
            )
        else:
            challenge = {"www-authenticate": 'Basic realm="Capture Canary", charset="UTF-8"'}
            await PlainTextResponse("unauthorized\n", 401, challenge)(scope, receive, send)

    async def _allowed(self, users: Mapping[str, bytes], name: str, password: bytes) -> bool | None:
        """Whether the password is right; None where too many wait for that answer."""
        # A name that does not exist takes as long as one that does.
        hashed = users.get(name) or next(iter(users.values()))
        # Of name, password and hash, by a key of this process: a changed hash, or a leaked memory, is worth nothing.
        parts = b"\0".join(hashlib.sha256(part).digest() for part in (name.encode(), password))
        mark = hmac.digest(self._key, parts + hashed, "sha256")
        if mark in self._good:
            self._good.move_to_end(mark)
            return True
        if mark in self._bad:
            return False
        if self._waiting >= MAX_WAITING:
            return None
        right = await self._check(password, hashed) and name in users
        marks = self._good if right else self._bad
        marks[mark] = None
        if len(marks) > _REMEMBERED:
            marks.popitem(last=False)
        return right

    async def _check(self, password: bytes, hashed: bytes) -> bool:
        """One at a time, in a thread: bcrypt is slow by intent."""
        self._worker = self._worker or ThreadPoolExecutor(1, thread_name_prefix="password")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._worker, _matches, password, hashed
            )
        finally:
            self._waiting -= 1


def _matches(password: bytes, hashed: bytes) -> bool:
    bcrypt = importlib.import_module("bcrypt")  # reading the file has seen that it is there
    try:
        right: bool = bcrypt.checkpw(password[:_BCRYPT_BYTES], hashed)
    except ValueError:  # a NUL in the password
        return False
    return right


def credentials(header: str) -> tuple[str, bytes] | None:
    """Return name and password of an Authorization header; None where it has none."""
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, colon, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
        return (name.decode(), password) if colon else None
    except (binascii.Error, ValueError):
        return None
