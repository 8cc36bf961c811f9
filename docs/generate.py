"""Writes what in docs/ is made from the code (`make docs`): schemas, settings, images, tables of faults and fuzzing."""

import json
import sys
from pathlib import Path

import msgspec

from capture_canary.config.keys import schema
from capture_canary.config.reference import reference
from capture_canary.images import matrix
from capture_canary.images.cells import Cell
from capture_canary.model import Report

DOCS = Path(__file__).parent
FUZZED = "<!-- made of tests/fuzz/results.json -->\n"
FAULTS = "<!-- made of tests/faults/table.py -->\n"
BEGIN, END = "<!-- made by `capture-canary config reference` -->\n", "<!-- end -->"
IMAGES, IMAGES_END = "<!-- made from images/matrix.toml -->\n", "<!-- end of images -->"


def report_schema() -> str:
    """Return the JSON Schema of what `capture-canary probe --json` prints."""
    title = {"title": "What `capture-canary probe --json` prints"}
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(draft | title | msgspec.json.schema(Report), indent=2) + "\n"


def images() -> str:
    """Return the matrix of images as a table: a line for each CANN, what differs between systems left out."""
    lines = [
        "| CANN | SoC | gets slower | core | vllm-ascend | vLLM | torch-npu | Python |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    system = next(cell.system for cell in matrix.load())
    cells = [cell for cell in matrix.load() if cell.kind == "real" and cell.system == system]
    for core, vllm in zip(cells[::2], cells[1::2], strict=True):
        exposed = {True: "yes", False: "no", None: "not known"}[core.exposure.exposed]
        row = [core.cann, core.soc, exposed, _standing(core)]
        row += [
            vllm.vllm_ascend or "-",
            vllm.vllm or "-",
            vllm.torch_npu or "-",
            core.python or "-",
        ]
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def _standing(cell: Cell) -> str:
    return f"-: {cell.reason}" if cell.status == "unavailable" else cell.status


def replace(page: Path, begin: str, end: str, text: str) -> None:
    """Put a text between two marks of a page."""
    before, _, rest = page.read_text().partition(begin)
    page.write_text(before + begin + "\n" + text.strip() + "\n\n" + end + rest.partition(end)[2])


def faults() -> str:
    """Return the table of the faults that tests inject."""
    sys.path.insert(0, str(DOCS.parent))
    from tests.faults.table import page  # noqa: PLC0415  # found there

    return page()


def fuzzed() -> str:
    """Return the table of what the fuzzer did."""
    sys.path.insert(0, str(DOCS.parent))
    from tests.fuzz.results import table  # noqa: PLC0415  # found there

    return table()


def main() -> None:
    """Write the files."""
    (DOCS / "probe.schema.json").write_text(report_schema())
    (DOCS / "config.schema.json").write_text(json.dumps(schema(), indent=2) + "\n")
    replace(DOCS / "configuration.md", BEGIN, END, reference())
    replace(DOCS / "compatibility.md", IMAGES, IMAGES_END, images())
    replace(DOCS / "reliability.md", FAULTS, END, faults())
    replace(DOCS / "fuzzing.md", FUZZED, END, fuzzed())


if __name__ == "__main__":
    main()
