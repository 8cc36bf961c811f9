"""One page by HTTP: bounded in size and in time, no redirect followed, no credential sent."""

import contextlib
import http.client
import socket
import threading
import urllib.parse


def get(url: str, *, deadline: float, limit: int, accept: str) -> bytes:
    """Return the page.

    Args:
        url: http or https, with a host.
        deadline: seconds for all of it; timeouts alone count from one byte to the next, and a page may drip.
        limit: bytes.
        accept: the kind of page.

    Raises:
        OSError: it can't be had, or not in time.
        ValueError: the address, the status, the size, a page that broke off, or what answers is no HTTP server; it
            repeats nothing of an answer, which may be another service's.
    """
    parts = urllib.parse.urlsplit(url)
    kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
    if parts.scheme not in kinds or not parts.hostname:
        raise ValueError("not an http(s) address")
    connection = kinds[parts.scheme](parts.hostname, parts.port, timeout=deadline)
    late = threading.Event()
    watchdog = threading.Timer(deadline, _shut, [connection, late])
    watchdog.daemon = True
    watchdog.start()
    try:
        target = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
        connection.request("GET", target, headers={"Accept": accept})
        with connection.getresponse() as response:
            if response.status != http.client.OK:
                raise ValueError(f"HTTP status {response.status}")
            body: bytes = response.read(limit + 1)
            missing = response.length
    except http.client.HTTPException as error:  # most of them quote what they got
        raise ValueError(f"no answer in HTTP ({type(error).__name__})") from None
    finally:
        watchdog.cancel()
        connection.close()
    if len(body) > limit:
        raise ValueError(f"over {limit} bytes")
    if missing or late.is_set():  # half a page must not pass for a whole one
        raise ValueError(f"the page broke off after {len(body)} bytes")
    return body


def _shut(connection: http.client.HTTPConnection, late: threading.Event) -> None:
    late.set()
    if connection.sock is not None:
        with contextlib.suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)
