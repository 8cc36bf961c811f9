"""Images of a release: which there are, each built and held against the matrix, pushed, joined, signed by digest."""

import argparse
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from steps import wheels
from steps.running import ROOT, StepError, canary, inspect, repository_of, run

ARCHITECTURES = tuple(wheels.ARCHITECTURES.values())
MOST_ADDED = 40_000_000
"""Bytes that a core image may add to its base."""
_INJECTOR = ROOT / "images" / "injector"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_LOOPBACK = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d+)?/")
_PLAIN = {"BUILDX_NO_DEFAULT_ATTESTATIONS": "1"}
"""One manifest for an image, whatever builds it: its provenance and SBOM are attested beside it."""


def cells(_: argparse.Namespace) -> None:
    """Print the cells of the matrix that are published, as an output of a step: one job is made of each."""
    names = [
        cell["name"] for cell in json.loads(canary("images", "list", "--kind", "real", "--json"))
    ]
    print(f"cells={json.dumps(names)}")


def image(args: argparse.Namespace) -> None:
    """Build a cell for this machine's architecture, hold it against the matrix, and print its name as an output."""
    chosen = [args.cell, "--repository", f"{args.to}/capture-canary"]
    network = ["--network", args.network] if args.network else []
    canary("images", "build", *chosen, "--source", ROOT, *network)
    canary("images", "verify", *chosen)
    (size,) = json.loads(canary("images", "size", *chosen, "--json"))
    if size["added_bytes"] > MOST_ADDED:
        raise StepError(
            f"{size['image']} adds {size['added_bytes']} bytes to its base, over {MOST_ADDED}"
        )
    print(f"image={size['image']}")


def injector(args: argparse.Namespace) -> None:
    """Build the injector of each architecture from the payloads that were tested; print its name as an output."""
    wheels.check(args.out)
    base = args.base or str(_found(r"^ARG BASE=(\S+)$", (_INJECTOR / "Dockerfile").read_text()))
    name = f"{args.to}/injector:{args.version}"
    for arch in ARCHITECTURES:
        about = {
            "VERSION": args.version,
            "REVISION": run("git", "-C", ROOT, "rev-parse", "HEAD"),
            **_pinned(base, arch),
        }
        words = [word for key, value in about.items() for word in ("--build-arg", f"{key}={value}")]
        with tempfile.TemporaryDirectory() as work:
            run("tar", "-xf", args.out / f"payload-{arch}.tar.gz", "-C", work)
            run("cp", _INJECTOR / "Dockerfile", _INJECTOR / "inject", work)
            command = [
                "docker",
                "build",
                f"--platform=linux/{arch}",
                *words,
                "-t",
                f"{name}-{arch}",
                work,
            ]
            run(*command, env={**os.environ, **_PLAIN})
    print(f"image={name}")


def _pinned(base: str, arch: str) -> dict[str, str]:
    """Resolve a base to the digest of its image for an architecture: for FROM, and for the labels."""
    tagged, _, digest = base.partition("@")
    name = repository_of(tagged)
    said = run(
        "docker", "manifest", "inspect", *_insecure(base), f"{name}@{digest}" if digest else base
    )
    for one in json.loads(said).get("manifests", []):
        if one["platform"]["architecture"] == arch and one["platform"]["os"] == "linux":
            pinned = f"{name}@{one['digest']}"
            run("docker", "pull", "--quiet", f"--platform=linux/{arch}", pinned)
            return {"BASE": pinned, "BASE_NAME": tagged, "BASE_DIGEST": one["digest"]}
    raise StepError(f"{base}: its registry has none for {arch}")


def _insecure(image: str) -> list[str]:
    """A registry on this machine speaks plain HTTP."""
    return ["--insecure"] if _LOOPBACK.match(image) else []


def push(args: argparse.Namespace) -> None:
    """Push one architecture's image; write down its digest, and its SBOM."""
    repository, there = repository_of(args.image), f"{args.image}-{args.arch}"
    here = inspect(args.local or args.image)
    if here["Architecture"] != args.arch:
        raise StepError(f"{args.image} is for {here['Architecture']}, and not {args.arch}")
    run("docker", "tag", here["Id"], there)
    run("docker", "push", there)
    digests = [
        one.partition("@")[2]
        for one in inspect(there)["RepoDigests"]
        if one.startswith(f"{repository}@")
    ]
    if len(digests) != 1:
        raise StepError(f"{there}: no single digest: {digests}")
    args.pushed.mkdir(parents=True, exist_ok=True)
    canary("images", "sbom", there, "--out", args.pushed / f"sbom-{args.arch}.json")
    record = {"image": args.image, "digest": digests[0]}
    (args.pushed / f"{args.arch}.json").write_text(json.dumps(record))


def index(args: argparse.Namespace) -> None:
    """Join what was pushed of an image to one name; print that and all digests as outputs."""
    repository = repository_of(args.image)
    parts = {arch: _digest(args.pushed / f"{arch}.json", args.image) for arch in ARCHITECTURES}
    insecure = _insecure(args.image)
    names = [f"{repository}@{digest}" for digest in parts.values()]
    run("docker", "manifest", "create", *insecure, args.image, *names)
    said = run("docker", "manifest", "push", "--purge", *insecure, args.image)
    whole = said.splitlines()[-1] if said else ""
    if not _DIGEST.fullmatch(whole):
        raise StepError(f"{args.image}: no digest: {said[-200:]}")
    for key, value in {"name": repository, "digest": whole, **parts}.items():
        print(f"{key}={value}")


def _digest(path: Path, image: str) -> str:
    """Read what `push` wrote down."""
    try:
        record: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        raise StepError(f"{image}: was not pushed for {path.stem}") from None
    if record["image"] != image or not _DIGEST.fullmatch(record["digest"]):
        raise StepError(f"{path}: is of {record['image']}, and not of {image}")
    return str(record["digest"])


def sign(args: argparse.Namespace) -> None:
    """Sign an image and all that it joins, by digest; other words are options of `cosign sign`."""
    if not _DIGEST.fullmatch(args.digest):
        raise StepError(f"{args.digest}: is no digest")
    run("cosign", "sign", "--yes", "--recursive", *args.words, f"{args.name}@{args.digest}")


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise StepError(f"nothing matches {pattern}")
    return match[1]
