"""What servers and CANN print: captures' bars, followed files, plogs, and what a bundle takes out of them."""

import os
from datetime import timedelta

from capture_canary.bundle import plogs
from capture_canary.bundle.redact import Redactor
from capture_canary.logs.evidence import FileEvidence
from capture_canary.logs.follow import Follower
from capture_canary.logs.parse import HINTS, events
from tests.fuzz.target import Target, put, scratch
from tests.stack.nodes import DATA

LOGS = [path.read_bytes() for path in sorted((DATA / "vllm-logs").glob("*.log"))]
BAR = b"Capturing ACL graphs (decode, FULL): 100%|####| 35/35 [00:41<00:00,  1.18s/it]\r"
STEP = b"\n%"
"""Begins a step of a file's life: what is appended, or its first letter for what befalls it."""
PLOG = b"[INFO] HCCL(9,python3):2026-11-30-10:00:0%d.123.456 [x.cc:1] [9] rank[0] ip[10.0.0.%d]\n"
SECRETS = (
    b"password=hunter2secret",
    b"Authorization: Bearer abcdef0123456789",
    b"ssh://u:hunter2secret@h/",
)
CITED = (b"hunter2secret", b"abcdef0123456789")


def captures(data: bytes) -> None:
    evidence = FileEvidence()
    for piece in data.split(b"\n"):
        for event in events(piece.decode(errors="replace")):
            evidence.add(event)
    found = evidence.judge()
    # A log raises a suspicion at most.
    assert found.verdict == "unknown"
    assert found.cause in {None, "suspect"}
    assert found.growth.copies is None
    assert found.reason.isprintable()


def follow(data: bytes) -> None:
    path = scratch("follow") / "server.log"
    path.unlink(missing_ok=True)
    follower, hinted = Follower([str(path)]), Follower([str(path)], hints=HINTS)
    written, seen = b"", b""
    disturbed = False
    try:
        for step in data.split(STEP):
            if step[:1] in (b"T", b"R", b"D"):
                disturbed = True
                path.with_suffix(".old").unlink(missing_ok=True)
                {b"T": _truncate, b"R": _rotate, b"D": _remove}[step[:1]](path)
            else:
                with path.open("ab") as file:
                    file.write(step)
                written += step
            seen += "".join(one.text for one in follower.poll()).encode()
            _ = [*hinted.poll()]
        path.unlink(missing_ok=True)
        seen += "".join(one.text for one in follower.poll()).encode()
    finally:
        follower.close()
        hinted.close()
    if not disturbed:  # all that was written is seen once, in order
        whole = b"".join(written.replace(b"\r", b"\n").split(b"\n"))
        assert whole.isascii() is False or seen == whole


def _truncate(path: os.PathLike[str]) -> None:
    if os.path.exists(path):  # noqa: PTH110  # of a step, whatever the path is
        os.truncate(path, 0)


def _rotate(path: os.PathLike[str]) -> None:
    if os.path.exists(path):  # noqa: PTH110  # the same
        os.replace(path, os.fspath(path).replace(".log", ".old"))  # noqa: PTH105  # the same


def _remove(path: os.PathLike[str]) -> None:
    if os.path.exists(path):  # noqa: PTH110  # the same
        os.unlink(path)  # noqa: PTH108  # the same


def plog(data: bytes) -> None:
    text = data.decode(errors="replace")
    kept = plogs.newest(text, timedelta(minutes=10))
    assert text.endswith(kept)


def redact(data: bytes) -> None:
    text = data.decode(errors="replace")
    middle = text.rfind("\n") + 1
    for secret in SECRETS:
        found = Redactor(["node-7"]).text(f"{text[:middle]}{secret.decode()}\n{text[middle:]}")
        assert not any(
            word.decode() in found for word in CITED if word in secret and word not in data
        )


def names(data: bytes) -> None:
    """Files of a home folder, by whatever names."""
    folder = scratch("home") / "ascend/log/run/plog"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for name in data.split(b"\n")[:8]:
        if (
            name
            and b"/" not in name
            and b"\0" not in name
            and name not in (b".", b"..")
            and len(name) < 200
        ):
            put(folder / os.fsdecode(name), PLOG % (1, 1))
    for found, text in plogs.plogs(scratch("home"), ["/"], lambda _: True, timedelta(minutes=1)):
        assert found.isascii()
        assert text


TARGETS = (
    Target(
        "log-captures", "bars and finish lines of servers' logs", captures, longest=4096,
        seeds=lambda: [*(log[:4000] for log in LOGS), *(log[-4000:] for log in LOGS), BAR * 3],
        tokens=(BAR, b"Capturing ", b"CUDA graphs", b"ACL graphs", b"Graph capturing finished in 9 secs, took 1.5 GiB", b"(Worker pid=9)", b"207008"),
    ),
    Target(
        "log-file", "a log that is written, cut, rotated, removed", follow, longest=1024,
        seeds=lambda: [b"a\nb" + STEP + b"c\n", b"one\r" + STEP + b"T" + STEP + b"two\n" + STEP + b"R" + STEP + b"three", BAR + STEP + b"D"],
        tokens=(STEP, STEP + b"T", STEP + b"R", STEP + b"D", b"\r"),
    ),
    Target(
        "plog", "CANN's own logs", plog, longest=2048,
        seeds=lambda: [b"".join(PLOG % (n, n) for n in range(9)), PLOG % (1, 1) + b"no time\n"],
        tokens=(b":0001-01-01-00:00:00.", b":9999-12-31-23:59:59.", b":2026-11-30-10:00:00."),
    ),
    Target("plog-names", "names of such files", names, lambda: [b"plog-9_20261130100000.log\nplog-pid_9_1.log\nx"], longest=256, tokens=(b"plog-", b".log")),
    Target(
        "redact", "what a bundle takes out of texts", redact, longest=1024,
        seeds=lambda: [PLOG % (1, 1), b"\n".join(SECRETS), b"serial number: 2102351ABC node-7 a@b.example fe80::1 00:11:22:33:44:55"],
        tokens=(b"password", b"token=", b"://", b"@", b"Bearer ", b"::", b"10.0.0.1", b"<secret-1>"),
    ),
)  # fmt: skip
