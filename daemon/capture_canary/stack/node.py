"""The whole node at one look: what is installed here, its NPUs, what serves, and whether we can speak for it."""

import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import msgspec

from capture_canary.model import Fact, Stack
from capture_canary.stack.cann import contradictions, find_home, read_stack
from capture_canary.stack.devices import device_nodes
from capture_canary.stack.environ import of_pairs
from capture_canary.stack.exposure import Exposure, exposure
from capture_canary.stack.helpers import Helpers
from capture_canary.stack.inside import Root
from capture_canary.stack.mode import Mode, Said, mode_of
from capture_canary.stack.npus import Npus, NpusUnknownError
from capture_canary.stack.packages import read_packages
from capture_canary.stack.processes import Finder
from capture_canary.stack.servers import Servers, about_them
from capture_canary.stack.soc import soc_of
from capture_canary.trace.header import ProcessFacts


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """Where to look; another node's tree in tests."""

    root: Path = Path("/")
    proc: Path = Path("/proc")
    dev: Path = Path("/dev")


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """What a look showed."""

    stack: Stack
    """Ours: that of this container or host."""
    contradictions: tuple[str, ...]
    npus: Npus | None
    npus_error: str | None
    nodes: tuple[int, ...]
    """N of each /dev/davinciN that we see."""
    mode: Mode
    """That a process started here, with our environment, would have."""
    exposed: bool | None
    reason: str
    servers: Servers
    about_servers: bool | None
    """Whether what a probe of ours finds holds for the servers, too."""
    about_servers_why: str

    @property
    def soc(self) -> str | None:
        """The SoC's name or family."""
        return self.stack["soc"].value


def look_at_node(
    environ: Mapping[str, str],
    read_npus: Callable[[], Npus],
    finder: Finder,
    helpers: Helpers | None = None,
    *,
    places: Places = Places(),  # noqa: B008  # immutable
    traces: Mapping[tuple[int, int], ProcessFacts] | None = None,
) -> Node:
    """Look once; as long as npu-smi may take, and a second or so for processes that hang."""
    npus, error = _npus(read_npus)
    stack = own_stack(environ, places.root)
    stack["soc"] = soc_of(npus) if npus else Fact(value=None, source=error or "npu-smi")
    soc = stack["soc"].value
    mode = mode_of([Said("environment", of_pairs(environ.items()))], traced=None, soc=soc)
    found = _exposure(stack, mode)
    nodes = device_nodes(places.dev)
    servers = (helpers or Helpers()).look(finder, nodes=nodes, soc=soc, traces=traces)
    about, why = about_them(stack, servers.servers)
    return Node(
        stack=stack,
        contradictions=tuple(contradictions(stack)),
        npus=npus,
        npus_error=error,
        nodes=tuple(sorted(nodes)),
        mode=mode,
        exposed=found.exposed,
        reason=found.reason,
        servers=servers,
        about_servers=about,
        about_servers_why=why,
    )


def own_stack(environ: Mapping[str, str], path: Path = Path("/")) -> Stack:
    """Return what is installed here, without the SoC."""
    named = [environ.get(name) for name in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")]
    with closing(Root(path)) as root:
        home = find_home(root, named)
        packages = read_packages(root, [sys.prefix if path == Path("/") else None])
        if home is None:
            nothing = Fact(value=None, source="no CANN where one is usual, nor where it is named")
            return {"cann": nothing, **packages}
        return {**read_stack(home, root=root), **packages}


def _npus(read_npus: Callable[[], Npus]) -> tuple[Npus | None, str | None]:
    try:
        return read_npus(), None
    except NpusUnknownError as error:
        return None, str(error)


def _exposure(stack: Stack, mode: Mode) -> Exposure:
    hcomm = stack["hcomm"].value if "hcomm" in stack else None
    return exposure(soc=stack["soc"].value, hcomm=hcomm, mode=mode.set_to)
