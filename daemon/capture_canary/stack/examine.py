"""Looks into one serving process: its container, environment, installed versions and expansion mode."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress

from capture_canary.model import Fact, Stack
from capture_canary.stack.cann import contradictions, find_home, read_stack
from capture_canary.stack.cgroups import Container
from capture_canary.stack.environ import Environment
from capture_canary.stack.inside import Root
from capture_canary.stack.mode import Said, mode_of
from capture_canary.stack.npus import printable
from capture_canary.stack.packages import prefix_of, read_packages
from capture_canary.stack.proc import ProcessFolder
from capture_canary.stack.servers import Pod, Server, expected
from capture_canary.stack.serving import arguments, serves
from capture_canary.stack.untraced import untraced
from capture_canary.trace.header import ProcessFacts

MAX_ANCESTORS = 4
_HOST_NAME = "/etc/hostname"
_NAMESPACE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
_PTRACE = "needs its user, or hostPID and CAP_SYS_PTRACE (docs/permissions.md)"
_OFF = Environment(values={}, complete=False)


class Examiner:
    """For the length of one look: what processes of one container share is read once."""

    def __init__(
        self,
        proc: str,
        *,
        inspect: bool,
        soc: str | None,
        told: Mapping[str, Said] | None = None,
    ) -> None:
        """Args: where processes are, whether to look into them, the node's SoC, containers' variables."""
        self._told = told or {}
        self._proc = proc
        self._inspect = inspect
        self._soc = soc
        self._stacks: dict[object, Stack] = {}

    def examine(
        self, pid: int, argv: Sequence[str], traced: ProcessFacts | None, npus: Sequence[int] = ()
    ) -> Server | None:
        """Return all that is known of a process that holds these NPUs; None if it has ended."""
        folder = ProcessFolder(self._proc, pid)
        unseen: list[str] = []
        try:
            start_time = folder.times().start_time
            container = folder.container()
        except OSError:
            return None
        said, options = self._environments(folder, container, argv, unseen)
        if container and container.id in self._told:
            said.append(self._told[container.id])
        environment = said[0].environment if said else _OFF
        stack = self._stack(folder, argv, environment, unseen) if self._inspect else {}
        stack = {**stack, **_called(traced)}
        if self._soc:
            stack["soc"] = Fact(value=self._soc, source="the node's NPUs")
        mode = mode_of(said, traced=traced, soc=self._soc, argv=options)
        exposed = expected(stack, mode, self._soc)
        served = serves(argv)
        return Server(
            pid=pid,
            start_time=start_time,
            engine=served.engine if served else "unknown",
            role=served.role if served else printable(argv[0].rpartition("/")[2], 48),
            found_by=(),
            npus=tuple(npus),
            container=container,
            pod=self._pod(folder, container),
            mode=mode,
            stack=stack,
            contradictions=tuple(contradictions(stack)),
            exposed=exposed.exposed,
            reason=exposed.reason,
            unseen=tuple(unseen),
            untraced=untraced(
                folder,
                [one.environment for one in said],
                traced=traced is not None,
                npus=bool(npus),
            ),
        )

    def _environments(
        self,
        folder: ProcessFolder,
        container: Container | None,
        argv: Sequence[str],
        unseen: list[str],
    ) -> tuple[list[Said], list[str]]:
        """Its environment, and where a title has overwritten it the parents'; and all their options."""
        if not self._inspect:
            return [], list(argv)
        said: list[Said] = []
        options = list(argv)
        try:
            said.append(Said("environment", folder.environment()))
        except OSError as error:
            unseen.append(f"environment: {error.strerror or error}, {_PTRACE}")
        for parent in self._parents(folder, container):
            try:
                options += arguments(parent.cmdline())
                if not (said and said[-1].environment.complete):
                    said.append(Said("parent", parent.environment()))
            except OSError:
                break
        if said and not any(one.environment.complete for one in said):
            unseen.append("environment: overwritten by the process's title, and no parent has it")
        return said, options

    def _parents(
        self, folder: ProcessFolder, container: Container | None
    ) -> Iterator[ProcessFolder]:
        """The processes above it that belong to the same server."""
        for _ in range(MAX_ANCESTORS):
            try:
                folder = ProcessFolder(self._proc, folder.times().parent)
                if folder.container() != container or not serves(arguments(folder.cmdline())):
                    return
            except OSError:
                return
            yield folder

    def _stack(
        self,
        folder: ProcessFolder,
        argv: Sequence[str],
        environment: Environment,
        unseen: list[str],
    ) -> Stack:
        loaded: list[str] = []
        program = None
        with suppress(OSError):
            loaded = folder.cann_homes()
        with suppress(OSError):
            program = folder.program()
        named = [environment.values.get(n) for n in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")]
        prefixes = (
            environment.values.get("VIRTUAL_ENV"),
            prefix_of(argv[0]),
            prefix_of(program),
        )
        try:
            with closing(Root(f"{folder.path}/root")) as root:
                key = (root.identity(), *loaded, *named, *prefixes)
                if key not in self._stacks:
                    self._stacks[key] = _read(root, [*loaded, *named], prefixes)
                stack = self._stacks[key]
        except OSError as error:
            unseen.append(f"installed versions: {error.strerror or error}, {_PTRACE}")
            return {}
        if len(loaded) > 1:
            unseen.append(f"it has {len(loaded)} copies of CANN loaded; the first is shown")
        return stack

    def _pod(self, folder: ProcessFolder, container: Container | None) -> Pod | None:
        """The pod by its own files: its host name is its name, unless it is on the host's network."""
        if container is None or container.pod_uid is None:
            return None
        name = namespace = None
        if self._inspect:
            with suppress(OSError), closing(Root(f"{folder.path}/root")) as root:
                name = _line(root, _HOST_NAME)
                namespace = _line(root, _NAMESPACE)
        source = "its host name" if name else "cgroup"
        return Pod(uid=container.pod_uid, name=name, namespace=namespace, source=source)


def _read(root: Root, homes: Sequence[str | None], prefixes: Sequence[str | None]) -> Stack:
    home = find_home(root, homes)
    if home is None:
        return {
            "cann": Fact(value=None, source="no CANN where one is usual, nor where it is named"),
            **read_packages(root, prefixes),
        }
    return {**read_stack(home, root=root), **read_packages(root, prefixes)}


def _called(traced: ProcessFacts | None) -> Stack:
    """Versions of the libraries that a traced process called."""
    libraries = traced.libraries if traced else ()
    return {
        one.package: Fact(value=one.version, source=one.path)
        for one in libraries
        if one.path and one.version
    }


def _line(root: Root, path: str) -> str | None:
    with suppress(OSError):
        text = root.read(path, 256).decode(errors="replace").strip()
        return printable(text, 253) or None
    return None
