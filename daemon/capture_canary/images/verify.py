"""Holds an image against its cell of the matrix: its labels, what is in it, and whether our parts work in it."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from capture_canary.images.cells import Cell
from capture_canary.images.engine import EngineError
from capture_canary.images.job import STAGE
from capture_canary.images.layers import added, inspect
from capture_canary.images.run import Ran, RunError, answer, run
from capture_canary.model import Report, Stack
from capture_canary.stack import versions
from capture_canary.stack.exposure import FIXED, default_mode, mitigates
from capture_canary.stack.npus import printable

LABELS: Final = "io.capture-canary."
_SECONDS: Final = 180.0
"""For each thing that is run in it: a second or two on a node that is not overloaded."""
_ENTRY: Final = "/opt/capture-canary/bin/capture-canary"
_PYTHON: Final = "/opt/capture-canary/bin/python"
_EMULATED: Final = ("a2", "a3")
"""Families whose growth is emulated."""
_PACKAGES: Final = {"torch_npu": "torch_npu", "vllm": "vllm", "vllm_ascend": "vllm_ascend"}
"""A cell's fields, by the names that the stack has for them."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at."""

    name: str
    ok: bool
    said: str


class _Node(msgspec.Struct):
    stack: Stack


class _Doctor(msgspec.Struct):
    """What we take of `doctor --json`."""

    emulated: bool
    node: _Node


def verify(client: Any, cell: Cell, tag: str, *, lock: str) -> Iterator[Check]:
    """Look at an image, and yield what was found, one thing after the other.

    Args:
        client: a `docker.DockerClient`.
        cell: what it is to be.
        tag: the image.
        lock: what containers of ours are marked with; the caller holds it.
    """
    try:
        about = inspect(client, tag)
    except EngineError as error:
        yield Check(name="image", ok=False, said=str(error))
        return
    config = about["Config"]
    yield _labels(cell, config.get("Labels") or {})
    yield _settings(config)
    yield _tried("base", lambda: _base(client, cell, tag))

    def inside(argv: list[str], entrypoint: list[str] | None = None) -> Ran:
        return run(client, tag, argv, deadline=_SECONDS, lock=lock, entrypoint=entrypoint)

    yield _tried("python", lambda: _python(cell, inside(["-VV"], [_PYTHON])))
    yield from _content(cell, inside)
    yield _tried("tracer", lambda: _tracer(inside(["exec", "--", "cat", "/proc/self/maps"])))
    if cell.family in _EMULATED:
        words = ["probe", "--json", "--emulate", f"cann={cell.cann},soc={cell.family}"]
        yield _tried("probe", lambda: _probe(cell, answer(inside(words), Report)))


def _tried(name: str, look: Callable[[], Check]) -> Check:
    try:
        return look()
    except (RunError, EngineError) as error:
        return Check(name=name, ok=False, said=str(error))


def _labels(cell: Cell, labels: dict[str, str]) -> Check:
    wanted = {
        "kind": cell.kind,
        "cann": cell.cann,
        "soc": cell.soc,
        "os": cell.system,
        "flavour": cell.flavour,
    }
    said = {name: labels.get(f"{LABELS}{name}") for name in wanted}
    wrong = [
        f"{name} {printable(str(said[name]), 64)} and not {value}"
        for name, value in wanted.items()
        if said[name] != value
    ]
    if labels.get(STAGE) != "done":
        wrong.append("that it is not finished")
    text = "say " + ", ".join(wrong or (f"{name} {value}" for name, value in wanted.items()))
    return Check(name="labels", ok=not wrong, said=text)


def _settings(config: dict[str, Any]) -> Check:
    """What it is run with where nobody says otherwise."""
    user = str(config.get("User") or "")
    wrong = []
    if user.partition(":")[0] in ("", "0", "root"):
        wrong.append("it runs as root")
    if config.get("Entrypoint") != [_ENTRY]:
        wrong.append("its entry point is not ours")
    if not config.get("Healthcheck"):
        wrong.append("it has no health check")
    said = ", ".join(wrong) or f"user {user}, health check"
    return Check(name="settings", ok=not wrong, said=said)


def _base(client: Any, cell: Cell, tag: str) -> Check:
    found = added(client, tag, cell.base or "")
    return Check(name="base", ok=True, said=f"{cell.base} and {found.added_bytes / 1e6:.1f} MB")


def _python(cell: Cell, ran: Ran) -> Check:
    said = printable(ran.output[:200].decode("utf-8", "replace").strip(), 100)
    ok = ran.code == 0 and f"Python {cell.python}." in said
    return Check(name="python", ok=ok, said=said if ok else f"{said}, and not {cell.python}")


def _content(cell: Cell, inside: Callable[[list[str]], Ran]) -> Iterator[Check]:
    """Hold the stack that our doctor sees in it against the cell."""
    try:
        found = answer(inside(["doctor", "--json"]), _Doctor)
    except RunError as error:
        yield Check(name="stack", ok=False, said=str(error))
        return
    kind = "emulated" if found.emulated else "real"
    yield Check(name="kind", ok=kind == cell.kind, said=f"its CANN is {kind}")
    stack = found.node.stack
    for name in ("cann", "hcomm"):
        fact = stack.get(name)
        said = fact.value if fact else None
        if name == "hcomm" and said is None:  # old CANNs do not tell
            continue
        ok = versions.parse(said) is not None and versions.parse(said) == versions.parse(cell.cann)
        text = f"{said or 'none'} ({printable(fact.source, 120) if fact else 'nowhere'})"
        yield Check(name=name, ok=ok, said=text if ok else f"{text}, and not {cell.cann}")
    for field, name in _PACKAGES.items():
        wanted = getattr(cell, field)
        if wanted is None:
            continue
        said = stack[name].value if name in stack else None
        ok = said == wanted
        yield Check(
            name=field, ok=ok, said=str(said) if ok else f"{said or 'none'}, and not {wanted}"
        )


def _tracer(ran: Ran) -> Check:
    ok = ran.code == 0 and b"libcapturetrace.so" in ran.output
    return Check(name="tracer", ok=ok, said="loads" if ok else f"does not load: {ran.errors}")


def _probe(cell: Cell, report: Report) -> Check:
    """Hold an emulated probe against what the emulation of this CANN is to show."""
    grows = not mitigates(default_mode(cell.family)) and not versions.at_least(cell.cann, FIXED)
    wanted = ("degraded", True) if grows else ("healthy", report.matches_law)
    ok = report.emulated and bool(report.control) and (report.verdict, report.matches_law) == wanted
    said = f"{report.verdict}, {report.control or 'no'} copies in the positive control"
    text = (
        f"emulated: {said}"
        if ok
        else f"{said}, and not {wanted[0]}: {printable(report.reason, 200)}"
    )
    return Check(name="probe", ok=ok, said=text)
