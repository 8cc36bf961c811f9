"""The nouns of what serves on this node: a server's process, its pod, and what one expects of it."""

from typing import Literal

import msgspec

from capture_canary.model import Stack
from capture_canary.stack.cgroups import Container
from capture_canary.stack.exposure import Exposure, exposure, mitigates
from capture_canary.stack.mode import SEVERAL, Mode
from capture_canary.stack.serving import FRONT

FoundBy = Literal["cmdline", "device", "trace"]


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod, as far as it is known."""

    uid: str | None
    name: str | None
    namespace: str | None
    source: str
    """Who said the name."""


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """One process that serves, or holds an NPU."""

    pid: int
    start_time: int
    engine: str
    """vllm, mindie, sglang, or unknown."""
    role: str
    found_by: tuple[FoundBy, ...]
    npus: tuple[int, ...]
    """N of each /dev/davinciN that it has open."""
    container: Container | None
    pod: Pod | None
    mode: Mode
    stack: Stack
    contradictions: tuple[str, ...]
    exposed: bool | None
    reason: str
    unseen: tuple[str, ...]
    """What could not be read of it, and what would show it."""
    untraced: str | None = None
    """Why it has no trace although it was started to be traced."""

    @property
    def several_communicators(self) -> bool:
        """Whether several communicators work in it, as far as options and trace tell."""
        return SEVERAL in self.mode.doubts

    @property
    def captures(self) -> bool:
        """Whether it is one that captures graphs: a front end does not."""
        return (
            bool(self.npus)
            or "trace" in self.found_by
            or (self.role != FRONT and not self.role.startswith("APIServer"))
        )

    @property
    def speaks(self) -> bool:
        """Whether its mode and stack are a server's; a stranger on an NPU, or a probe of ours, decides nothing."""
        return self.captures and (self.engine != "unknown" or "trace" in self.found_by)


class Servers(msgspec.Struct, frozen=True, kw_only=True):
    """All that one look at /proc showed."""

    servers: tuple[Server, ...] = ()
    looked_at: int = 0
    """Processes."""
    unseen: tuple[str, ...] = ()


Outlook = Literal["will degrade", "mitigated", "not exposed", "unknown"]


def outlook(server: Server) -> tuple[Outlook, str]:
    """Return what to expect of a server's captures before anything is measured, and why."""
    mode = server.mode
    if server.exposed is False:
        return "not exposed", server.reason
    if server.exposed is None:
        return "unknown", server.reason
    if mode.in_force is None:
        return "unknown", f"its expansion mode is not known, and {server.reason}"
    if mitigates(mode.in_force) and mode.effective:
        return "mitigated", f"{mode.in_force} is in force (not verified): {server.reason}"
    why = f"; {mode.doubts[0]}" if not mode.effective else ""
    return "will degrade", f"{server.reason}, with {mode.in_force} in force{why}"


def expected(stack: Stack, mode: Mode, soc: str | None) -> Exposure:
    """Return whether such a stack is exposed."""
    hcomm = stack["hcomm"].value if "hcomm" in stack else None
    return exposure(soc=soc, hcomm=hcomm, mode=mode.set_to)


def about_them(ours: Stack, servers: tuple[Server, ...]) -> tuple[bool | None, str]:
    """Return whether a probe of our stack speaks for the servers: True, False, or None where nobody knows."""
    mine = ours["hcomm"].value if "hcomm" in ours else None
    capturing = [server for server in servers if server.speaks]
    if not capturing:
        return None, "no serving process is seen"
    theirs = {_hcomm(server) for server in capturing}
    others = sorted(version for version in theirs if version and version != mine)
    if mine is None:
        return None, "our own hcomm's version is not known"
    if others:
        return False, (
            f"the servers run hcomm {', '.join(others)}, we have {mine}: "
            "a probe of ours says nothing of them"
        )
    if None in theirs:
        return None, "the hcomm of a server is not known"
    return True, f"the servers run hcomm {mine}, as we do"


def _hcomm(server: Server) -> str | None:
    return server.stack["hcomm"].value if "hcomm" in server.stack else None
