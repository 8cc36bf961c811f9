"""What the pages tell people to type, as far as helm and kubectl can try it here."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from tests.real.cluster import kube
from tests.real.cluster.rendering import OPERATOR, Helm

pytestmark = pytest.mark.real
ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "docs" / name for name in ("install.md", "deployment.md")]
ELSEWHERE = ("their/chart", "plugin install", "helm test", "helm uninstall", "helm rollback")
"""Tried by other tests."""


def commands(tool: str) -> list[str]:
    found = [
        line.strip().partition("   #")[0].strip()
        for page in PAGES
        for line in page.read_text("utf-8").splitlines()
        if re.match(rf" {{4,}}{tool} ", line)
    ]
    assert found
    return [one for one in found if not any(word in one for word in ELSEWHERE)]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart and the examples, where a command may write beside them."""
    folder = tmp_path_factory.mktemp("tree")
    shutil.copytree(ROOT / "helm", folder / "helm")
    return folder


@pytest.mark.parametrize("command", commands("helm"))
def test_helm_takes_what_a_page_says(helm: Helm, tree: Path, command: str):
    words = [
        word for word in shlex.split(command)[1:] if word not in ("--install", "--reuse-values")
    ]
    assert words[0] in ("install", "upgrade", "template")
    words = ["template", *words[1:]]
    words += [part for api in OPERATOR for part in ("--api-versions", api)]
    words = [str(tree / word) if word.startswith("helm/") else word for word in words]
    ran = helm.run(*words)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("command", [one for one in commands("kubectl") if "apply -k" in one])
def test_kustomize_takes_what_a_page_says(helm: Helm, command: str):
    ran = kube.run_client(
        helm.clients / "kubectl",
        ["kustomize", ROOT / command.rsplit(maxsplit=1)[-1]],
        home=helm.home,
    )
    assert ran.returncode == 0, ran.stderr


def test_links_of_the_pages_lead_somewhere():
    for page in [
        *PAGES,
        ROOT / "docs/faq.md",
        ROOT / "docs/permissions.md",
        kube.CHART / "README.md",
    ]:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8")):
            assert target.startswith("https://") or (page.parent / target).exists(), (
                page.name,
                target,
            )
