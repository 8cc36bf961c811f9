"""Which processes serve a model, and as what, by their command line: vLLM, MindIE, SGLang.

vLLM and SGLang give their children titles (`VLLM::Worker_TP0`, `sglang::scheduler_TP0`), which replace the
command line in /proc, and overwrite the environment there.
"""

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Literal, NamedTuple

Engine = Literal["vllm", "mindie", "sglang"]

MAX_ARGUMENTS = 512
FRONT = "API server"
"""The role of a process that takes requests: it captures nothing itself where others work for it."""

_PYTHON = re.compile(r"python[0-9.]*", re.ASCII)
_TITLES: tuple[tuple[re.Pattern[str], Engine], ...] = (
    (re.compile(r"VLLM::([A-Za-z0-9_]{1,48})", re.ASCII), "vllm"),
    (re.compile(r"sglang::([A-Za-z0-9_]{1,48})", re.ASCII), "sglang"),
    (re.compile(r"ray::([A-Za-z0-9_]{0,48}RayWorker[A-Za-z0-9_]{0,48})", re.ASCII), "vllm"),
)
_MINDIE = {"mindieservice_daemon", "mindie_llm_backend_connector", "mindie_llm_server"}
_MODULES: tuple[tuple[str, Engine], ...] = (
    ("vllm.entrypoints.", "vllm"),
    ("sglang.launch_server", "sglang"),
)
_COMMANDS: dict[str, Engine] = {"vllm": "vllm", "sglang": "sglang"}
_NO_VALUE = re.compile(r"-[bBdEhiIOPqsSuvVx]+", re.ASCII)
"""Options of python that take no value."""
_PARALLEL = ("--enable-expert-parallel", "--enable-ep", "-ep")
_SIZES = ("--data-parallel-size", "-dp", "--pipeline-parallel-size", "-pp", "--dp-size", "--dp")


class Serves(NamedTuple):
    """What a process is to a server."""

    engine: Engine
    role: str


def arguments(cmdline: bytes) -> list[str]:
    """Return the arguments in a /proc/PID/cmdline, which may hold anything."""
    text = cmdline.rstrip(b"\0").decode(errors="replace")
    return text.split("\0", MAX_ARGUMENTS)[:MAX_ARGUMENTS] if text else []


def serves(argv: Sequence[str]) -> Serves | None:
    """Return what a process serves; None where its command line names no server."""
    if not argv:
        return None
    for pattern, engine in _TITLES:
        if title := pattern.match(argv[0]):
            return Serves(engine, title[1])
    program = argv[0].rpartition("/")[2]
    if program in _MINDIE:
        return Serves("mindie", program)
    return (_of_python if _PYTHON.fullmatch(program) else _of_command)(argv)


def communicators_likely(argv: Sequence[str]) -> bool:
    """Whether a server's options make several communicators work at the same time (EP, DP, PP)."""
    for option, value in zip_longest(argv, argv[1:], fillvalue=""):
        name, _, given = option.partition("=")
        if name in _PARALLEL:
            return True
        size = given or value
        if name in _SIZES and size.isdecimal() and int(size[:9]) > 1:
            return True
    return False


def names_model(argv: Sequence[str], model: str) -> bool:
    """Whether an argument names a model, however it is spelled."""
    wanted = model.replace("-", "").replace("_", "").lower()
    return any(wanted in a[:4096].replace("-", "").replace("_", "").lower() for a in argv)


def _of_python(argv: Sequence[str]) -> Serves | None:
    rest = argv[1:]
    for index, argument in enumerate(rest):
        if argument == "-m":
            module = rest[index + 1] if index + 1 < len(rest) else ""
            found: list[Engine] = [e for start, e in _MODULES if module.startswith(start)]
            return Serves(found[0], FRONT) if found else None
        if not _NO_VALUE.fullmatch(argument):
            return _of_command(rest[index:])
    return None


def _of_command(argv: Sequence[str]) -> Serves | None:
    """`vllm serve …`, as a command or as a script that python runs."""
    engine = _COMMANDS.get(argv[0].rpartition("/")[2])
    return Serves(engine, FRONT) if engine and argv[1:2] == ["serve"] else None
