"""`capture-canary run`: the daemon, put together from its parts."""

import argparse
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

from capture_canary import __version__
from capture_canary.commands.config import add_settings, flags_of
from capture_canary.config import Config, ConfigError, ConfigFile, find_config
from capture_canary.config.checks import split_listen
from capture_canary.emulate import EmulationError
from capture_canary.exits import USAGE
from capture_canary.export.app import make_app
from capture_canary.export.connections import Limits as WebLimits
from capture_canary.export.exposition import Exposition
from capture_canary.export.server import NotServingError, Server
from capture_canary.export.source import Source
from capture_canary.export.state import State, Totals
from capture_canary.export.textfile import TextFile
from capture_canary.export.webconfig import Followed
from capture_canary.gate.latch import Latch, LatchFile
from capture_canary.gate.model import Reason
from capture_canary.heap import keep_small
from capture_canary.kubernetes.exchange import FOLDER, Exchange
from capture_canary.lock import INSTANCE, LockBusyError, LockUnusableError, acquire
from capture_canary.logging import configure_logging, get_logger
from capture_canary.probe.base import base_environment
from capture_canary.schedule import Schedule, SystemClock, node_name
from capture_canary.service.board import Board, View, sources
from capture_canary.service.daemon import LATE, Daemon, Watcher
from capture_canary.service.jobs import JobAsker
from capture_canary.service.logs import LogWatch
from capture_canary.service.prober import Prober
from capture_canary.service.remembered import ScheduleMemory, restore
from capture_canary.service.servers import ServerWatch
from capture_canary.service.settings import plan_of, probes
from capture_canary.service.stacks import StackWatch
from capture_canary.service.told import KubernetesWatch
from capture_canary.service.traces import TraceWatch
from capture_canary.stack.cann import read_stack
from capture_canary.store import Limits, Store
from capture_canary.trace.folder import TraceFolder

FAILED = 1
"""Exit code of a daemon that could not start for what the machine lacks; wrong settings are 2."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_settings(parser)
    parser.add_argument(
        "--log-format",
        choices=("auto", "json", "console"),
        default="auto",
        help="console where standard error is a terminal, else JSON (%(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Run until a signal ends it."""
    keep_small()
    configure_logging(args.log_format)
    try:
        file = ConfigFile(find_config(args.config, os.environ), os.environ, flags_of(args))
        web = Followed(file.current.config.web.config_file)
        base = base_environment(os.environ, file.current.config.emulate)
    except (ConfigError, EmulationError) as error:
        sys.stderr.write(f"{error}\n")
        return USAGE
    try:
        with instance(file.current.config):
            daemon, server = build(file, web, base)
            daemon.listen_to_signals()
            server.start()
            try:
                daemon.run()
            finally:
                server.stop()
    except (NotServingError, LockBusyError) as error:
        get_logger("daemon").error("not_started", why=str(error))
        return FAILED
    return 0


@contextmanager
def instance(config: Config) -> Iterator[None]:
    """Be the one daemon of this state folder; where the folder cannot be written, the history is in memory anyway.

    Raises:
        LockBusyError: another daemon runs on it.
    """
    log = get_logger("daemon")
    try:
        lock = acquire(config.state_dir / INSTANCE, holder="another daemon")
    except LockUnusableError as error:
        log.warning("no_instance_lock", why=str(error))
        yield
        return
    try:
        yield
    finally:
        lock.release()


def build(file: ConfigFile, web: Followed, base: dict[str, str]) -> tuple[Daemon, Server]:
    """Return the daemon of these settings, and the server of its pages."""
    config = file.current.config
    node = node_name(os.environ, socket.gethostname())
    store = Store(
        config.state_dir,
        limits=Limits(
            max_age=float(config.history.max_age), max_bytes=int(config.history.max_size)
        ),
    )
    schedule = Schedule(plan_of(config, node), ScheduleMemory(store), SystemClock())
    if config.emulate is not None and not schedule.probed:
        schedule.request()  # nobody is disturbed, and somebody is waiting to see it
    latch = Latch(LatchFile(config.state_dir / "probe-latch.json"))
    board = Board(_first_view(config, base, store, latched=latch.why()))
    prober = Prober(board, store, schedule, latch, base=base)
    folder = TraceFolder(config.trace_dir)
    watchers: list[Watcher] = [
        TraceWatch(folder, board, store),
        ServerWatch(config, folder, board),
        StackWatch(board, store),
    ]
    if config.logs:
        watchers.append(LogWatch(config.logs, board))
    asker = JobAsker(board, store, schedule, latch, Exchange(config.state_dir / FOLDER))
    watchers.append(
        KubernetesWatch(config.state_dir, board, lambda: schedule.plan, lambda: file.current.config)
    )
    text = Exposition(lambda: board.view)
    watchers.append(TextFile(text, lambda: file.current.config.web.textfile))
    daemon = Daemon(
        config=file,
        board=board,
        store=store,
        schedule=schedule,
        prober=prober,
        asker=asker,
        watchers=watchers,
        node=node,
    )
    source = Source(
        view=lambda: board.view,
        store=store,
        node=node,
        alive=lambda: board.late() < LATE,
        ready=lambda: board.begun,
    )
    return daemon, _server(config, source, web)


def _server(config: Config, source: Source, web: Followed) -> Server:
    host, port = split_listen(config.listen)
    return Server(
        make_app(source, users=lambda: web.now().users),
        host=host,
        port=port,
        limits=WebLimits(
            connections=config.web.max_connections,
            header_bytes=int(config.web.max_header),
            request_seconds=float(config.web.request_timeout),
            idle_seconds=float(config.web.idle_timeout),
        ),
        tls=lambda: web.now().tls,
    )


def _first_view(config: Config, base: dict[str, str], store: Store, *, latched: str | None) -> View:
    skips = dict.fromkeys(get_args(Reason), 0)
    state = State(
        version=__version__,
        emulated=config.emulate is not None,
        stack=read_stack(Path(base["ASCEND_HOME_PATH"])) if "ASCEND_HOME_PATH" in base else {},
        evidence=sources(config.logs, probes=probes(config)),
        totals=Totals(skips=skips),
    )
    return View(
        state=restore(state, store),
        latched=latched,
        paused=config.paused,
        mode=config.mode,
        history_problem=store.problem,
    )
