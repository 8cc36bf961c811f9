"""How builds go, on the screen: a bar for each cell on a terminal, else a line where something changes."""

import contextlib
import threading
from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from capture_canary.images.builds import Observe
from capture_canary.images.job import Event

_ENDS = {"built": "built", "kept": "there already", "failed": "FAILED"}


@contextlib.contextmanager
def progress(console: Console, names: list[str]) -> Iterator[Observe]:
    """Show it until the end; yields what builds tell."""
    if not console.is_terminal:
        yield _Lines(console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[text]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as bars:
        yield _Bars(bars, names)


class _Lines:
    """For a log: what began, each RUN, and the end."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = threading.Lock()
        self._said: dict[str, str] = {}

    def __call__(self, name: str, event: Event) -> None:
        if event.kind == "log" or (event.kind == "step" and not event.text.startswith("RUN")):
            return
        text = f"{_ENDS[event.kind]}: {event.text}" if event.kind in _ENDS else event.text[:100]
        with self._lock:
            if self._said.get(name) == text:
                return
            self._said[name] = text
            self._console.print(f"{name}: {text}", markup=False, highlight=False, soft_wrap=True)


class _Bars:
    def __init__(self, bars: Progress, names: list[str]) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {
            name: bars.add_task(escape(name), total=None, start=False, text="waiting")
            for name in names
        }

    def __call__(self, name: str, event: Event) -> None:
        task = self._tasks[name]
        if event.kind == "log":
            return
        self._bars.start_task(task)
        if event.kind in _ENDS:
            text = (
                f"{_ENDS[event.kind]}: {event.text}"
                if event.kind == "failed"
                else _ENDS[event.kind]
            )
            self._bars.update(task, total=1, completed=1, text=escape(text[:200]))
            self._bars.stop_task(task)
        else:
            self._bars.update(
                task, total=event.whole, completed=event.part, text=escape(event.text[:60])
            )
