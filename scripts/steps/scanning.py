"""Known vulnerabilities of an image: what is ours and can be mended ends it, what its base brings is reported.

Syft lists what is in the image with the layer that each thing is in, Grype looks those up. What tells ours from the
base's is the layer. A scan that did not see our packages is blind, and ends it, too.
"""

import argparse
import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec
from steps.running import StepError, canary, inspect, run

GRAVE = ("Critical", "High")
_BASE = "org.opencontainers.image.base."
_SHOWN = 20
"""Findings of the base that are listed, the gravest; all are counted."""


class _Place(msgspec.Struct):
    path: str
    layer: str = msgspec.field(default="", name="layerID")


class _Thing(msgspec.Struct):
    """A package in an image, as Syft and Grype write it."""

    name: str
    version: str
    type: str
    locations: list[_Place]


class _Layer(msgspec.Struct):
    digest: str


class _Layers(msgspec.Struct):
    layers: list[_Layer]


class _Scanned(msgspec.Struct):
    metadata: _Layers


class _Matched(msgspec.Struct):
    target: _Layers


class Packages(msgspec.Struct):
    """What we take of `syft -o syft-json`."""

    artifacts: list[_Thing]
    source: _Scanned


class _Fix(msgspec.Struct):
    versions: list[str]
    state: str


class _Vulnerability(msgspec.Struct):
    id: str
    severity: str
    fix: _Fix


class _Match(msgspec.Struct):
    vulnerability: _Vulnerability
    artifact: _Thing


class Matches(msgspec.Struct):
    """What we take of `grype -o json`."""

    matches: list[_Match]
    source: _Matched


class _Component(msgspec.Struct):
    name: str
    version: str = ""
    purl: str = ""


class Sbom(msgspec.Struct):
    """What we take of `capture-canary images sbom`."""

    components: list[_Component]


class Finding(NamedTuple):
    """A known vulnerability of something that is in an image."""

    severity: str
    id: str
    package: str
    fixed_in: str
    """Versions; empty where there is none."""
    ours: bool

    @property
    def ends_it(self) -> bool:
        """Whether it is for us to mend before a release."""
        return self.ours and self.severity in GRAVE and bool(self.fixed_in)


def scan_image(args: argparse.Namespace) -> None:
    """Scan an image that is here; print a report, and end with an error where something of ours is to be mended."""
    labels = inspect(args.image)["Config"].get("Labels") or {}
    base = inspect(base_of(labels))["RootFS"]["Layers"]
    with tempfile.TemporaryDirectory() as work:
        packages, matches, sbom = (Path(work, f"{name}.json") for name in ("syft", "grype", "sbom"))
        run("syft", "scan", f"docker:{args.image}", "--quiet", "-o", f"syft-json={packages}")
        canary("images", "sbom", args.image, "--out", sbom)
        check_sees_ours(read(packages, Packages), base, read(sbom, Sbom))
        run("grype", f"sbom:{packages}", "--quiet", "-o", "json", "--file", matches)
        found = findings(read(matches, Matches), base)
    print(report(args.image, found))
    to_mend = ", ".join(f"{one.package} {one.id}" for one in found if one.ends_it)
    if to_mend:
        raise StepError(f"{args.image}: to be mended: {to_mend}")


Kind = TypeVar("Kind")


def read(path: Path, kind: type[Kind]) -> Kind:
    """Read what a tool wrote."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except msgspec.DecodeError as error:
        raise StepError(f"{path.name}: {error}") from None


def base_of(labels: dict[str, str]) -> str:
    """Return the image it is built on, by digest where a registry told one."""
    name, digest = labels.get(f"{_BASE}name"), labels.get(f"{_BASE}digest")
    if not name or not digest:
        raise StepError(f"the image does not say what it is built on: {_BASE}name, {_BASE}digest")
    if name.startswith("localhost/"):
        return digest  # an image's id: it is in no registry
    return f"{name.rpartition(':')[0] or name}@{digest}"


def above(layers: list[str], base: list[str]) -> set[str]:
    """Return the layers that an image adds to its base's."""
    if layers[: len(base)] != base or len(layers) == len(base):
        raise StepError("the scanner's layers are not those of the base and more")
    return set(layers[len(base) :])


def check_sees_ours(packages: Packages, base: list[str], sbom: Sbom) -> None:
    """End it where Syft did not list one of our Python packages in our layers."""
    ours = above([one.digest for one in packages.source.metadata.layers], base)
    seen = {
        (_same(one.name), one.version)
        for one in packages.artifacts
        if one.type == "python" and ours & {place.layer for place in one.locations}
    }
    there = {
        (_same(one.name), one.version)
        for one in sbom.components
        if one.purl.startswith("pkg:pypi/")
    }
    if not there or there - seen:
        missed = ", ".join(sorted(name for name, _ in there - seen)) or "anything"
        raise StepError(f"the scanner is blind: it did not see {missed}")


def findings(matches: Matches, base: list[str]) -> list[Finding]:
    """Return what Grype found, ours first and the gravest first. What is in no layer of the base counts as ours."""
    above([one.digest for one in matches.source.target.layers], base)
    return sorted((_finding(match, set(base)) for match in matches.matches), key=_gravest_first)


def _finding(match: _Match, below: set[str]) -> Finding:
    about, thing = match.vulnerability, match.artifact
    return Finding(
        severity=about.severity,
        id=about.id,
        package=f"{thing.name} {thing.version}",
        fixed_in=", ".join(about.fix.versions) if about.fix.state == "fixed" else "",
        ours=not thing.locations or any(place.layer not in below for place in thing.locations),
    )


_ORDER = ("Critical", "High", "Medium", "Low", "Negligible")


def _gravest_first(one: Finding) -> tuple[bool, int, str, str]:
    rank = _ORDER.index(one.severity) if one.severity in _ORDER else len(_ORDER)
    return (not one.ours, rank, one.package, one.id)


def report(image: str, found: list[Finding]) -> str:
    """Return the report as Markdown: ours in full, the base's counted, and its gravest."""
    ours = [one for one in found if one.ours]
    others = [one for one in found if not one.ours]
    grave = [one for one in others if one.severity in GRAVE]
    lines = [
        f"### {image}",
        "",
        f"Known vulnerabilities: {len(ours)} of what we add, {len(others)} of the base.",
        "",
    ]
    counted = Counter(one.severity for one in others)
    lines += (
        [
            f"The base's: {', '.join(f'{number} {name}' for name, number in counted.most_common())}.",
            "",
        ]
        if others
        else []
    )
    shown = ours + grave[:_SHOWN]
    if shown:
        lines += ["| of | severity | | package | fixed in |", "| --- | --- | --- | --- | --- |"]
        lines += [_row(one) for one in shown]
    if len(grave) > _SHOWN:
        lines += ["", f"{len(grave) - _SHOWN} more of the base's are critical or high."]
    return "\n".join(lines)


def _row(one: Finding) -> str:
    cells = (
        "us" if one.ours else "the base",
        one.severity,
        one.id,
        one.package,
        one.fixed_in or "-",
    )
    return "| " + " | ".join(re.sub(r"[|\s]+", " ", cell) for cell in cells) + " |"


def _same(name: str) -> str:
    """Spell a package's name as PyPI compares them."""
    return re.sub(r"[-_.]+", "-", name).lower()
