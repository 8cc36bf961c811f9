"""The findings of `doctor` as plain text that fits one screen."""

import textwrap
from collections.abc import Iterator

from capture_canary.doctor.findings import Expected, Findings, who
from capture_canary.model import Stack
from capture_canary.stack.exposure import family
from capture_canary.stack.servers import Server
from capture_canary.trend.texts import Language

WIDTH = 100
_EXPOSED = {True: "exposed", False: "not exposed", None: "unknown"}
MAX_SERVERS = 8
"""Shown by themselves; workers of one server are one line."""
_VERSIONS = (
    "cann", "hcomm", "hccl", "runtime", "driver", "firmware", "torch_npu", "vllm", "vllm_ascend",
)  # fmt: skip


def screen(found: Findings, language: Language = "en") -> str:
    """Return the screen."""
    return "\n".join(_lines(found, language)) + "\n"


def _lines(found: Findings, language: Language) -> Iterator[str]:
    node = found.node
    if found.emulated:
        yield "EMULATED: this says nothing of any real NPU."
    yield from _entry("stack", f"{found.stack_id}: {versions(node.stack)}")
    for text in node.contradictions:
        yield from _entry("", f"! {text}")
    yield from _entry("NPUs", _npus(found))
    yield from _entry("exposure", f"{_EXPOSED[node.exposed]}: {node.reason}")
    in_force = f"{node.mode.in_force or 'unknown'} ({node.mode.source})"
    yield from _entry("our mode", in_force)
    yield from _entry("servers", node.about_servers_why)
    yield from _servers(found, language)
    yield from _entry("probe", found.gate.sentence)
    measured = found.probe_mode or "the SoC's default"
    yield from _entry("", f"It would measure {measured} ({found.probe_mode_source}).")
    for number, text in enumerate(found.unseen):
        yield from _entry("" if number else "not seen", f"- {text}")


def versions(stack: Stack) -> str:
    """Return the versions that are known."""
    known = [
        f"{name} {stack[name].value}" for name in _VERSIONS if name in stack and stack[name].value
    ]
    return ", ".join(known) or "nothing of CANN is installed here"


def _npus(found: Findings) -> str:
    npus = found.node.npus
    if npus is None:
        return f"unknown: {found.node.npus_error}"
    soc = family(found.node.soc)
    busy = sum(1 for chip in npus.chips if chip.processes)
    unhealthy = sum(1 for chip in npus.chips if chip.health != "OK")
    return (
        f"{len(npus.chips)} chips of {soc.upper() if soc else 'a SoC that is not known'}, "
        f"{busy} with processes, {unhealthy} not healthy ({npus.source} in a {found.place} context)"
    )


def _servers(found: Findings, language: Language) -> Iterator[str]:
    """One entry for processes that are alike, the first of them named."""
    groups: dict[object, list[Server]] = {}
    for server in found.node.servers.servers:
        pod = server.pod.name if server.pod else None
        kind = server.container and server.container.id
        groups.setdefault((server.captures, kind, pod, server.mode), []).append(server)
    said = {one.pid: one for one in found.expected}
    for number, servers in enumerate(groups.values()):
        if number == MAX_SERVERS:
            yield from _entry("", f"and {len(groups) - MAX_SERVERS} kinds more (--json shows all)")
            return
        yield from _server(servers, said.get(servers[0].pid), language)


def _server(servers: list[Server], said: Expected | None, language: Language) -> Iterator[str]:
    first, more = servers[0], len(servers) - 1
    npus = sorted({n for one in servers for n in one.npus})
    text = who(first) + (f" and {more} more" if more else "")
    text += f", NPUs {','.join(map(str, npus))}" if npus else ""
    if first.container:
        text += f", {first.container.runtime or 'container'} {first.container.id[:12]}"
    yield from _entry("", f"* {text}")
    mode = f"{first.mode.in_force or 'unknown'} ({first.mode.source})"
    yield from _entry("", f"  mode {mode}; {versions(first.stack)}")
    for doubt in (*first.contradictions, *first.mode.doubts, *first.unseen):
        yield from _entry("", f"  ! {doubt}")
    if said and said.advice[language]:
        yield from _entry("", f"  {said.advice[language]}")


def _entry(name: str, text: str) -> Iterator[str]:
    indent = " " * (len(text) - len(text.lstrip(" -*!")))
    yield from textwrap.wrap(
        text,
        WIDTH,
        initial_indent=f"{name:<10}",
        subsequent_indent=" " * 10 + indent,
        break_on_hyphens=False,
    )
