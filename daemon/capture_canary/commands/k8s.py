"""`capture-canary k8s`: what the daemon has to say to Kubernetes, by a process beside it (docs/deployment.md)."""

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import Any

import yaml

from capture_canary.exits import USAGE
from capture_canary.kubernetes.exchange import FOLDER, Exchange
from capture_canary.logging import configure_logging, get_logger

FAILED = 1
MAX_TEMPLATE = 64 << 10
_MOST = 1000


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path("/var/lib/capture-canary") / FOLDER,
        help="folder shared with the daemon: `kubernetes` in its state folder (%(default)s)",
    )
    parser.add_argument("--job", type=Path, metavar="FILE", help="mode job: the Job, as YAML")
    parser.add_argument(
        "--max-at-once",
        type=int,
        default=4,
        metavar="N",
        help="Jobs at once in the fleet (%(default)s)",
    )
    parser.add_argument(
        "--node-condition", action="store_true", help="keep the condition CaptureCanaryProbeStale"
    )
    parser.add_argument("--events", action="store_true", help="an Event when the verdict changes")
    parser.add_argument("--log-format", choices=("auto", "json", "console"), default="auto")


def run(args: argparse.Namespace) -> int:
    """Run until a signal ends it."""
    configure_logging(args.log_format)
    node = os.environ.get("NODE_NAME", "")
    if not node:
        sys.stderr.write("capture-canary k8s: NODE_NAME is not set\n")
        return USAGE
    if not 1 <= args.max_at_once <= _MOST:
        sys.stderr.write(f"capture-canary k8s: --max-at-once: not a number from 1 to {_MOST}\n")
        return USAGE
    try:
        template = read_template(args.job) if args.job else None
    except (OSError, ValueError, yaml.YAMLError) as error:
        sys.stderr.write(f"capture-canary k8s: --job {args.job}: {error}\n")
        return USAGE
    try:
        from capture_canary.kubernetes.api import Api, ApiError  # noqa: PLC0415  # an extra
    except ImportError as error:
        sys.stderr.write(
            f"capture-canary k8s needs pip install 'capture-canary[kubernetes]' ({error})\n"
        )
        return USAGE
    from capture_canary.kubernetes.jobs import Jobs  # noqa: PLC0415  # needs the extra, too
    from capture_canary.kubernetes.loop import Loop  # noqa: PLC0415  # the same
    from capture_canary.kubernetes.node import NodeCondition, VerdictEvents  # noqa: PLC0415  # the same

    try:
        api = Api()
    except ApiError as error:
        get_logger("k8s").error("not_started", why=str(error))
        return FAILED
    reporter = os.environ.get("POD_NAME", node)
    loop = Loop(
        Exchange(args.folder),
        jobs=Jobs(api, template, node=node, at_once=args.max_at_once) if template else None,
        condition=NodeCondition(api, node) if args.node_condition else None,
        events=VerdictEvents(api, node, reporter) if args.events else None,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: setattr(loop, "stopping", True))
    get_logger("k8s").info("started", node=node)
    loop.run()
    return 0


def read_template(path: Path) -> dict[str, Any]:
    """Return the Job that names and nodes are put into.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no such Job.
    """
    if path.stat().st_size > MAX_TEMPLATE:
        raise ValueError("it is too long")
    job = yaml.safe_load(path.read_text("utf-8"))
    try:
        metadata, spec = job["metadata"], job["spec"]
        good = (
            job["kind"] == "Job"
            and isinstance(metadata["generateName"], str)
            and isinstance(metadata["labels"], dict)
            and isinstance(spec["template"]["spec"], dict)
            and all(
                isinstance(spec[key], int) and spec[key] > 0
                for key in ("activeDeadlineSeconds", "ttlSecondsAfterFinished")
            )
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"it lacks {error}") from None
    if not good:
        raise ValueError(
            "it needs kind Job, a generateName, labels, a pod's spec, activeDeadlineSeconds and ttlSecondsAfterFinished"
        )
    return dict(job)
