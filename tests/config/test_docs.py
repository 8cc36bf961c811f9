"""What is written about the settings is what they are."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from capture_canary.config import Config, File, combine
from capture_canary.config.document import read_file
from capture_canary.config.keys import keys, schema, sections
from capture_canary.config.reference import reference

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLE = DOCS / "config.example.yaml"


def test_the_page_holds_the_reference():
    page = (DOCS / "configuration.md").read_text()
    begin, end = "<!-- made by `capture-canary config reference` -->\n", "<!-- end -->"
    assert page.partition(begin)[2].partition(end)[0].strip() == reference().strip()


def test_the_reference_has_every_key_with_its_variable_and_why():
    text = reference()
    for name, key in keys().items():
        row = next(line for line in text.splitlines() if line.startswith(f"| `{name}` |"))
        assert f"`{key.variable}`" in row
        assert len(key.meta.description or "") > 20
        assert row.count("|") == 6, "a | in a text would break the table"


def test_the_schema_file_is_the_models():
    written = json.loads((DOCS / "config.schema.json").read_text())
    assert written == json.loads(json.dumps(schema()))


def test_the_schema_is_one_and_closed_and_describes_every_key():
    made = schema()
    jsonschema.Draft202012Validator.check_schema(made)
    for definition in made["$defs"].values():
        assert definition["additionalProperties"] is False
        for entry in definition["properties"].values():
            assert entry["description"]
    properties = made["$defs"]["Config"]["properties"]
    assert set(properties) == {name.partition(".")[0] for name in keys()}
    assert made["$defs"]["Probe"]["properties"]["interval"]["default"] == "6h"


def nested(text: str) -> Any:
    return yaml.safe_load(text)


def test_the_example_is_every_key_at_its_default():
    effective = combine(read_file(EXAMPLE), {}, {}, privileged=True)
    assert effective.config == Config()
    assert {source.kind for source in effective.sources.values()} == {"file"}


def test_the_schema_takes_the_example():
    jsonschema.validate(nested(EXAMPLE.read_text()), schema())


@pytest.mark.parametrize(
    "text",
    [
        "probe: {interval: 6}",
        "probe: {ranks: 1}",
        "mode: x",
        "nope: 1",
        "gate: {nope: 1}",
        "state_dir: x",
        "gate: {reserve_hbm: 2G}",
        "probe: {shapes: []}",
    ],
)
def test_the_schema_refuses_what_the_daemon_refuses(text: str):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(nested(text), schema())
    with pytest.raises(ValueError, match=r"f\.yaml:1"):
        combine(File("f.yaml", text.encode()), {}, {}, privileged=True)


def test_sections_are_documented():
    assert all(section.__doc__ for section in sections().values())
