"""Wheels and the injector's payloads: built for both architectures, and tested as a user would install them."""

import argparse
import hashlib
import os
import platform
import re
import sys
import tempfile
import venv
from pathlib import Path

from steps.running import ROOT, StepError, run

sys.path.insert(0, str(ROOT / "images" / "injector"))
import payload  # noqa: E402  # beside what it makes

ARCHITECTURES = payload.ARCHITECTURES
"""As machines call themselves, and as images do."""
FLOOR = "manylinux_2_28"
"""The oldest glibc that the C parts load on: daemon/glibc_floor.h, held by a test."""
LOCKS = ("requirements.txt", "extras.txt")
"""In images/: all that is shipped beside our own package."""


def declared() -> str:
    """Return the version in pyproject.toml."""
    found = re.search(r'^version = "([^"]+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    if found is None:
        raise StepError("pyproject.toml has no version")
    return found[1]


def version(args: argparse.Namespace) -> None:
    """Print the version as an output of a step; a tag that names another one ends it."""
    if args.tag != f"v{declared()}":
        raise StepError(f"the tag is {args.tag}, pyproject.toml says {declared()}")
    print(f"version={declared()}")


def build(args: argparse.Namespace) -> None:
    """Write wheels, payloads as archives, and checksums."""
    args.out.mkdir(parents=True, exist_ok=True)
    for arch, name in ARCHITECTURES.items():
        with tempfile.TemporaryDirectory() as work:
            wheel = payload.own_wheel(arch, Path(work, "wheel"))
            payload.build(Path(work, "payload"), arch, wheel)
            archive = args.out / f"payload-{name}.tar.gz"
            # Always the same bytes of the same files.
            plain = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"]
            run("tar", "-I", "gzip -n", *plain, "-cf", archive, "-C", work, "payload")
            tagged = run(
                sys.executable,
                "-m",
                "wheel",
                "tags",
                f"--platform-tag={FLOOR}_{arch}",
                "--remove",
                wheel,
            )
            Path(work, "wheel", tagged.splitlines()[-1]).rename(args.out / tagged.splitlines()[-1])
    files = sorted(path for path in args.out.iterdir() if path.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (args.out / "SHA256SUMS").write_text("".join(lines))


def check(out: Path) -> None:
    """End it where a file is not what was built."""
    run("sha256sum", "-c", "--quiet", "SHA256SUMS", cwd=out)


def test(args: argparse.Namespace) -> None:
    """Check the checksums; install this machine's wheel as a user would; have it and the payload probe emulated."""
    check(args.out)
    with tempfile.TemporaryDirectory() as work:
        venv.create(Path(work, "venv"), with_pip=True)
        (wheel,) = args.out.glob(f"*{platform.machine()}.whl")
        run(Path(work, "venv/bin/python"), "-m", "pip", "install", "--quiet", wheel)
        name = ARCHITECTURES[platform.machine()]
        run("tar", "-xf", args.out / f"payload-{name}.tar.gz", "-C", work)
        environ = {**os.environ, "CAPTURE_CANARY_PAYLOAD": f"{work}/payload"}
        run(ROOT / "images" / "injector" / "inject", Path(work, "to"), env=environ)
        for canary in (Path(work, "venv/bin/capture-canary"), Path(work, "to/bin/capture-canary")):
            said = run(canary, "probe", "--emulate", "cann=9.1.0,soc=a3", "--json")
            if '"verdict": "healthy"' not in said:
                raise StepError(f"{canary}: {said[:500]}")


def scan(_: argparse.Namespace) -> None:
    """Ask PyPI's advisories for what is locked; a known vulnerability ends it."""
    locked = [word for name in LOCKS for word in ("-r", ROOT / "images" / name)]
    run(sys.executable, "-m", "pip_audit", "--strict", "--disable-pip", "--require-hashes", *locked)
