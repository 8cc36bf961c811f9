"""What docs/ says of the images is what the matrix says."""

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_holds_the_table():
    made = runpy.run_path(str(DOCS / "generate.py"))
    page = (DOCS / "compatibility.md").read_text()
    table = page.partition(made["IMAGES"])[2].partition(made["IMAGES_END"])[0]
    assert table.strip() == made["images"]()
    assert "| 9.1.0 | a3 | no | supported | 0.23.0 |" in table
