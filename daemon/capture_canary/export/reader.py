"""One thread that reads the history for pages and API: a slow disk delays them, never a scrape."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Reader:
    """Runs one reading at a time; its thread begins with the first."""

    def __init__(self) -> None:
        """Begin without a thread."""
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="pages")

    async def run(self, read: Callable[[], T]) -> T:
        """Return what `read` returns."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, read)
