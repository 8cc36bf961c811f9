"""Does many small pieces of work that may each hang for ever, and never hangs itself.

A read of /proc/PID/environ or of a container's file waits for memory or a file system that the process's owner
rules (FUSE, userfaultfd, dead NFS). No time limit on a read helps against that, so another thread reads; the one
that hangs is left behind, and what hung once is not asked again.
"""

import threading
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)
Result = TypeVar("Result")

MAX_STUCK = 4
"""Threads that may hang at the same time; then no further work is begun."""


class Patience(Generic[Item]):
    """Remembers which items hung; keep one for as long as the process lives."""

    def __init__(self, seconds: float = 1.0) -> None:
        """Wait this long for one item."""
        self._seconds = seconds
        self.stuck: dict[Item, threading.Thread] = {}

    def each(
        self, items: Iterable[Item], work: Callable[[Item], Result]
    ) -> tuple[dict[Item, Result], list[Item]]:
        """Return the result of each item, and the items that were given up or not begun.

        `work` must not raise.
        """
        self.stuck = {item: thread for item, thread in self.stuck.items() if thread.is_alive()}
        wanted = list(items)
        todo = [item for item in wanted if item not in self.stuck]
        results: dict[Item, Result] = {}
        while todo and len(self.stuck) < MAX_STUCK:
            run = _Run(todo, work)
            thread = threading.Thread(target=run.work, name="look", daemon=True)
            thread.start()
            hung = self._wait(run)
            results.update(run.results.copy())
            if hung is None:
                break
            self.stuck[todo[hung]] = thread
            todo = todo[hung + 1 :]
        return results, [item for item in wanted if item not in results]

    def _wait(self, run: "_Run[Item, Result]") -> int | None:
        """Return the index of the item that hangs, or None once all are done."""
        seen = -1
        while not run.done.wait(self._seconds):
            at = run.at
            if at == seen:
                run.given_up = True
                return at
            seen = at
        return None


class _Run(Generic[Item, Result]):
    """One thread's way through the items."""

    def __init__(self, items: list[Item], work: Callable[[Item], Result]) -> None:
        self._items = items
        self._do = work
        self.results: dict[Item, Result] = {}
        self.at = 0
        self.given_up = False
        """Somebody else goes on with the items after this one."""
        self.done = threading.Event()

    def work(self) -> None:
        try:
            for index, item in enumerate(self._items):
                self.at = index
                result = self._do(item)
                if self.given_up:
                    return
                self.results[item] = result
        finally:
            self.done.set()
