"""Marks Chinese pages as looked at: `python docs/zh/stamp.py [PAGE …]`, all of them without a name.

The last line of a page names the page that it translates, with the hash of its text then; tests/test_chinese.py holds
that nothing was changed since.
"""

import hashlib
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
MARK = re.compile(r"\n<!-- (\S+) ([0-9a-f]{16}) -->\n\Z")


def original(page: Path) -> Path:
    """Return the English page of a Chinese one."""
    if page.name == "README.zh.md":
        return ROOT / "README.md"
    return ROOT / "docs" / page.relative_to(ROOT / "docs" / "zh")


def mark(page: Path) -> str:
    """Return the line that a page should end with."""
    of = original(page)
    digest = hashlib.sha256(of.read_bytes()).hexdigest()[:16]
    return f"\n<!-- {of.relative_to(ROOT).as_posix()} {digest} -->\n"


def pages() -> list[Path]:
    """Return the Chinese pages."""
    return [ROOT / "README.zh.md", *sorted((ROOT / "docs" / "zh").rglob("*.md"))]


def main() -> None:
    """Write the marks."""
    for page in [Path(name).resolve() for name in sys.argv[1:]] or pages():
        text = MARK.sub("", page.read_text("utf-8"))
        page.write_text(text + mark(page), "utf-8")


if __name__ == "__main__":
    main()
