"""What is made from monitoring/ is committed as it is made."""

from pathlib import Path

import pytest
import yaml
from monitoring.render import document

pytest.importorskip("grafana_foundation_sdk", reason="the dashboards' library is not for 3.10")

from monitoring.__main__ import files


@pytest.mark.parametrize("path", files(), ids=lambda path: path.name)
def test_committed_files_are_those_that_are_made(path: Path):
    assert path.read_text() == files()[path], "run python -m monitoring"


def test_yaml_keeps_what_was_written():
    (rules,) = (content for path, content in files().items() if path.name == "rules.yaml")
    assert document() == yaml.safe_load(rules)
