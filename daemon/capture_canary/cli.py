"""The command `capture-canary`: its subcommands, and what is common to all of them."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from capture_canary.exits import UNKNOWN, USAGE

COMMANDS = {
    "probe": "measure capture growth once, and say what it means",
    "reproduce": "the fault as first described: 100 rounds of graphs, captured by real vLLM",
    "run": "the daemon: probe on a schedule, export metrics and pages",
    "k8s": "beside the daemon in a pod: Jobs, node condition and events",
    "health": "whether the daemon beside us runs, for a container's health check",
    "doctor": "what this node runs, who gets slower, what could not be seen",
    "exec": "run a command with the tracer preloaded",
    "config": "check, show and describe the settings",
    "history": "what was judged, changed and skipped on this node",
    "story": "this node in twenty lines: what, since when, who acts",
    "report": "the history as one HTML file",
    "bundle": "what a vendor asks for, in one redacted archive",
    "profile": "copies and their share of time, from a profile of msprof or torch-npu",
    "env": "make environments with a real torch-npu",
    "images": "images for every CANN: list, build, verify, compare",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code (0 healthy or mitigated, 1 degraded, 2 usage, 3 unknown)."""
    _mend_streams()
    args = list(sys.argv[1:] if argv is None else argv)
    if os.getpid() == 1 and args[:1] != [
        "exec"
    ]:  # what `exec` becomes is to be what it is without us
        from capture_canary.init import supervise  # noqa: PLC0415  # in a container only

        supervise()
    try:
        parsed = _parse(args)
        code: int = parsed.run(parsed)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output went away, e.g. `| head`
        _drop_output()
        return USAGE
    except OSError as error:  # of a command's own files each command speaks
        _drop_output()
        sys.stderr.write(f"capture-canary: {error}\n")
        return USAGE
    except Exception as error:  # noqa: BLE001  # Python would end with 1, which says `degraded`
        sys.excepthook(type(error), error, error.__traceback__)
        return UNKNOWN
    return code


def _parse(args: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="capture-canary", description=__doc__)
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    # Only the wanted command is imported: `exec` stands in the start of every traced server.
    wanted = args[0] if args and args[0] in COMMANDS else None
    for name, summary in COMMANDS.items():
        command = commands.add_parser(
            name, help=summary, description=f"capture-canary {name}: {summary}."
        )
        if name == wanted:
            module = importlib.import_module(
                f"capture_canary.commands.{name.replace('exec', 'execute')}"
            )
            module.configure(command)
            command.set_defaults(run=module.run)
    return parser.parse_args(args)


def _mend_streams() -> None:
    """Give a process that was started without some standard stream an empty one, before anything else gets its number.

    What a terminal cannot show is shown as `?`.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115  # open to its end
        if name != "stdin" and hasattr(getattr(sys, name), "reconfigure"):
            getattr(sys, name).reconfigure(errors="replace")


def _drop_output() -> None:
    """Let nothing that was not written be tried again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _version() -> str:
    from capture_canary import __version__  # noqa: PLC0415  # reads package metadata: only when asked

    return f"capture-canary {__version__}"


if __name__ == "__main__":
    sys.exit(main())
