"""Writes what in docs/ is made from the code (`make docs`): two schemas and the reference of the settings."""

import json
from pathlib import Path

import msgspec

from capture_canary.config.keys import schema
from capture_canary.config.reference import reference
from capture_canary.model import Report

DOCS = Path(__file__).parent
BEGIN, END = "<!-- made by `capture-canary config reference` -->\n", "<!-- end -->"


def report_schema() -> str:
    """Return the JSON Schema of what `capture-canary probe --json` prints."""
    title = {"title": "What `capture-canary probe --json` prints"}
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(draft | title | msgspec.json.schema(Report), indent=2) + "\n"


def main() -> None:
    """Write the files."""
    (DOCS / "probe.schema.json").write_text(report_schema())
    (DOCS / "config.schema.json").write_text(json.dumps(schema(), indent=2) + "\n")
    page = DOCS / "configuration.md"
    before, _, rest = page.read_text().partition(BEGIN)
    page.write_text(
        before + BEGIN + "\n" + reference().strip() + "\n\n" + END + rest.partition(END)[2]
    )


if __name__ == "__main__":
    main()
