"""`capture-canary bundle`: what a vendor's support asks for, in one archive."""

import argparse
import os
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path

import msgspec

from capture_canary import __version__
from capture_canary.bundle.archive import Archive
from capture_canary.bundle.cover import cover
from capture_canary.bundle.plogs import plogs
from capture_canary.bundle.redact import Redactor
from capture_canary.commands.config import add_settings, settings_of
from capture_canary.config import ConfigError
from capture_canary.config.units import Duration, Size
from capture_canary.doctor.findings import Findings, find
from capture_canary.doctor.screen import screen
from capture_canary.emulate import EmulationError
from capture_canary.exits import USAGE
from capture_canary.probe.base import base_environment
from capture_canary.stack import npu_smi
from capture_canary.stack.command import Command, CommandError
from capture_canary.stack.environ import of_pairs
from capture_canary.stack.inside import Root
from capture_canary.stack.patience import Patience
from capture_canary.stack.proc import ProcessFolder
from capture_canary.store import Probe, files, queries

MAX_PROBES = 20
MAX_LOG = 8 << 20
"""Bytes of the end of our own log."""
PATIENCE = 5.0
"""Seconds that reading one process's plogs may hang."""
HOMES = ["/root", "/home/HwHiAiUser"]
DRIVER = (
    "/usr/local/Ascend/driver/version.info",
    "/usr/local/Ascend/firmware/version.info",
    "/etc/ascend_install.info",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_settings(parser)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="a .tar.gz (named by time)"
    )
    parser.add_argument("--log", type=Path, metavar="FILE", help="the daemon's own log")
    parser.add_argument(
        "--window", type=Duration.parse, default=Duration.parse("1h"), help="of plogs (1h)"
    )
    parser.add_argument(
        "--max-size", type=Size.parse, default=Size.parse("32MiB"), help="of all files (32MiB)"
    )
    parser.add_argument(
        "--no-redaction", action="store_true", help="leave names, addresses and serials in"
    )


def run(args: argparse.Namespace) -> int:
    """Make the archive; return 0, or 2 where that cannot be done."""
    try:
        config = settings_of(args).config
        base = base_environment(os.environ, config.emulate)
    except (ConfigError, EmulationError) as error:
        sys.stderr.write(f"{error}\n")
        return USAGE
    found = find(config, base)
    redactor = None if args.no_redaction else Redactor(_hosts(found))
    archive = Archive(redactor, most=int(args.max_size))
    probes = _probes(config.state_dir, archive)
    archive.add("README.txt", cover(found, probes[0] if probes else None, redacted=bool(redactor)))
    archive.add("doctor.json", _json(found))
    archive.add("doctor.txt", screen(found))
    archive.add("probes.json", _json(probes))
    pairs = of_pairs(base.items()).values
    archive.add("environment.txt", "".join(f"{k}={v}\n" for k, v in sorted(pairs.items())))
    _npu_smi(base, archive)
    _files(archive, args.log)
    _plogs(found, base, timedelta(seconds=float(args.window)), archive)
    target = args.output or Path(time.strftime("capture-canary-%Y%m%d-%H%M%S.tar.gz"))
    try:
        size = archive.write(target, version=__version__, emulated=found.emulated)
    except OSError as error:
        sys.stderr.write(f"{target}: {error.strerror}\n")
        return USAGE
    sys.stdout.write(f"{target}: {size} bytes, {len(archive.entries)} files\n")
    for path, why in archive.missing.items():
        sys.stdout.write(f"missing: {path}: {why}\n")
    return 0


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value)).decode()


def _hosts(found: Findings) -> list[str]:
    """The names of hosts and pods that are known here."""
    host = socket.gethostname()
    names = [host, host.partition(".")[0]]
    names += [os.environ[name] for name in ("NODE_NAME", "HOSTNAME") if os.environ.get(name)]
    for server in found.node.servers.servers:
        if server.pod:
            names += [name for name in (server.pod.name, server.pod.namespace) if name]
    return names


def _probes(state_dir: Path, archive: Archive) -> list[Probe]:
    """The newest judgements, with their series."""
    try:
        with closing(files.open_for_reading(state_dir / files.NAME)) as connection:
            return queries.probes(connection, limit=MAX_PROBES, whole=True)
    except Exception as error:  # noqa: BLE001  # a broken history must not keep the rest back
        archive.missing["probes.json"] = f"{state_dir / files.NAME}: {error}"
        return []


def _npu_smi(base: Mapping[str, str], archive: Archive) -> None:
    try:
        _, output = Command([npu_smi.command(base), "info"], env=base).run()
        archive.add("npu-smi.txt", output.decode("utf-8", "replace"))
    except CommandError as error:
        archive.missing["npu-smi.txt"] = str(error)


def _files(archive: Archive, log: Path | None) -> None:
    """Driver, firmware, and our own log."""
    with closing(Root()) as root:
        texts = []
        for path in DRIVER:
            with suppress(OSError):
                texts.append(f"== {path}\n{root.read(path).decode('utf-8', 'replace')}")
        if texts:
            archive.add("driver.txt", "\n".join(texts))
        else:
            archive.missing["driver.txt"] = f"none of {', '.join(DRIVER)} is here"
    if log is None:
        archive.missing["our.log"] = "name the daemon's log with --log (journalctl, kubectl logs)"
        return
    try:
        with log.open("rb") as file:
            if file.seekable():
                file.seek(max(0, file.seek(0, os.SEEK_END) - MAX_LOG))
            archive.add("our.log", file.read(MAX_LOG).decode("utf-8", "replace"))
    except OSError as error:
        archive.missing["our.log"] = f"{log}: {error.strerror}"


def _plogs(found: Findings, base: Mapping[str, str], window: timedelta, archive: Archive) -> None:
    """Of each serving process by its PID, and of whatever else ran in our own container or on this host."""
    homes = list(dict.fromkeys([*HOMES, base.get("HOME") or HOMES[0]]))
    given: set[int] = set()

    def of_server(pid: int) -> list[tuple[str, str]]:
        folder = ProcessFolder("/proc", pid)
        with suppress(OSError):
            inner, root = folder.inner_pid(), Path(folder.path, "root")
            if root.samefile("/"):
                given.add(inner)
            return list(plogs(root, homes, lambda one: one == inner, window))
        return []

    # A container's file system need not answer.
    pids = [server.pid for server in found.node.servers.servers]
    logs, hung = Patience[int](PATIENCE).each(pids, of_server)
    texts = {f"plog/pid-{pid}/{name}": text for pid in logs for name, text in logs[pid]}
    ours = plogs(Path("/"), homes, lambda one: one not in given, window)
    texts |= {f"plog/here/{name}": text for name, text in ours}
    for name, text in texts.items():
        archive.add(name, text)
    if not texts:
        archive.missing["plog"] = "no plog was found in any ~/ascend/log that may be read"
    for pid in hung:
        archive.missing[f"plog/pid-{pid}"] = f"a look at its files hangs for {PATIENCE:g} s"
