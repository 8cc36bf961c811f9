"""What of a scan ends a release: on what Syft printed of an image of ours, and on matches in Grype's form."""

import json
import os
import platform
import re
import subprocess
from pathlib import Path

import msgspec
import pytest
from steps.running import StepError
from steps.scanning import Matches, Packages, Sbom, check_sees_ours, findings, read, report

ROOT = Path(__file__).parents[2]
PACKAGES = ROOT / "tests" / "data" / "scan" / "packages.json"
"""Of a stand-in's image by Syft 1.18, four of its packages."""
LAYERS = [one["digest"] for one in json.loads(PACKAGES.read_text())["source"]["metadata"]["layers"]]
BASE = LAYERS[:2]
OURS = LAYERS[2]


def match(severity="High", *, layer=OURS, state="fixed", versions=("2.0",), name="msgspec"):
    """As `grype -o json` has them, with what we do not read left in."""
    places = [{"path": "/a", "accessPath": "/a", "annotations": {"evidence": "primary"}}]
    if layer:
        places[0]["layerID"] = layer
    vulnerability = {
        "id": "CVE-2026-1",
        "severity": severity,
        "dataSource": "",
        "urls": [],
        "cvss": [],
    }
    thing = {
        "id": "a1",
        "name": name,
        "version": "1.0",
        "type": "python",
        "locations": places,
        "purl": "",
    }
    return {
        "vulnerability": vulnerability
        | {"fix": {"versions": list(versions), "state": state}, "risk": 1.68},
        "relatedVulnerabilities": [],
        "matchDetails": [],
        "artifact": thing,
    }


def judged(*found, layers=None):
    target = {"layers": [{"digest": one, "size": 1} for one in layers or LAYERS], "repoDigests": []}
    document = {
        "matches": found,
        "source": {"type": "image", "target": target},
        "descriptor": {"name": "grype"},
    }
    return findings(msgspec.convert(json.loads(json.dumps(document)), Matches), BASE)


@pytest.mark.parametrize(
    ("change", "ends"),
    [
        ({}, True),
        ({"severity": "Critical"}, True),
        ({"layer": None}, True),  # in no layer that is told: counts as ours
        ({"layer": LAYERS[3]}, True),
        ({"severity": "Medium"}, False),
        ({"severity": "Unknown"}, False),
        ({"state": "not-fixed", "versions": ()}, False),
        ({"state": "wont-fix"}, False),
        ({"layer": BASE[0]}, False),
        ({"layer": BASE[1], "severity": "Critical"}, False),
    ],
)
def test_what_we_add_and_can_be_mended_ends_it(change, ends):
    (one,) = judged(match(**change))
    assert one.ends_it is ends


def test_the_report_has_ours_in_full_and_counts_the_base_s():
    many = [match("High", layer=BASE[0], name=f"lib{number}") for number in range(25)]
    found = judged(*many, match("Low"), match("Negligible", layer=BASE[0]))
    text = report("registry/name:1", found)
    assert "Known vulnerabilities: 1 of what we add, 26 of the base." in text
    assert "The base's: 25 High, 1 Negligible." in text
    rows = [line for line in text.splitlines() if line.startswith(("| us", "| the base"))]
    assert (len(rows), rows[0]) == (21, "| us | Low | CVE-2026-1 | msgspec 1.0 | 2.0 |")
    assert text.endswith("5 more of the base's are critical or high.")
    assert report("a", []).endswith("0 of what we add, 0 of the base.\n")


def test_a_name_cannot_break_the_table():
    (row,) = [
        line for line in report("a", judged(match(name="a|b\n| c"))).splitlines() if "CVE" in line
    ]
    assert row == "| us | High | CVE-2026-1 | a b c 1.0 | 2.0 |"


def sbom(*names):
    parts = [
        {"name": name, "version": version, "purl": f"pkg:pypi/{name}@{version}", "type": "library"}
        for name, version in names
    ]
    base = {"name": "quay.io/ascend/cann", "type": "container", "version": "sha256:0"}
    return msgspec.convert({"components": [*parts, base]}, Sbom)


def test_a_scan_must_have_seen_what_we_ship():
    packages = read(PACKAGES, Packages)
    check_sees_ours(packages, BASE, sbom(("capture_canary", "0.1.0"), ("Msgspec", "0.23.0")))
    with pytest.raises(StepError, match=r"the scanner is blind: it did not see rich$"):
        check_sees_ours(packages, BASE, sbom(("msgspec", "0.23.0"), ("rich", "14.0")))
    with pytest.raises(StepError, match="did not see msgspec"):
        check_sees_ours(packages, BASE, sbom(("msgspec", "0.24.0")))
    with pytest.raises(StepError, match="did not see libssl3"):  # there, but the base's
        check_sees_ours(packages, BASE, sbom(("libssl3", "3.0.20-1~deb12u2")))
    with pytest.raises(StepError, match="did not see anything"):
        check_sees_ours(packages, BASE, sbom())


@pytest.mark.parametrize("layers", [LAYERS[:2], LAYERS[1:], [OURS], []])
def test_a_scan_of_another_image_is_refused(layers):
    target = {"layers": [{"digest": one} for one in layers]}
    matches = msgspec.convert({"matches": [], "source": {"target": target}}, Matches)
    with pytest.raises(StepError, match="not those of the base"):
        findings(matches, BASE)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"matches": [{}], "source": {}}', "\ud800"])
def test_what_is_no_scan_is_refused(tmp_path, text):
    path = tmp_path / "grype.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(StepError, match=r"^grype\.json: "):
        read(path, Matches)


def test_a_scanner_of_another_hash_is_not_taken(tmp_path):
    script = (ROOT / "scripts" / "get-grype").read_text()
    (version,) = re.findall(r"^version=(\S+)$", script, re.MULTILINE)
    arch = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    there = tmp_path / "from" / f"v{version}" / f"grype_{version}_linux_{arch}.tar.gz"
    there.parent.mkdir(parents=True)
    there.write_bytes(b"not it")
    done = subprocess.run(
        [ROOT / "scripts" / "get-grype", tmp_path / "to"],
        env={**os.environ, "GRYPE_RELEASES": (tmp_path / "from").as_uri()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "FAILED" in done.stdout
    assert not (tmp_path / "to").exists()
