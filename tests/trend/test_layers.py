"""Judging reads and writes nothing: what trend/ imports is pure."""

import ast
from pathlib import Path

import capture_canary.trend

PURE = {"model", "stack.exposure", "stack.versions"}
STANDARD = {
    "collections",
    "functools",
    "itertools",
    "math",
    "operator",
    "msgspec",
    "re",
    "statistics",
    "typing",
}


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_trend_imports_only_what_is_pure():
    folder = Path(capture_canary.trend.__path__[0])
    files = [
        *folder.glob("*.py"),
        *(folder.parent / f"{name.replace('.', '/')}.py" for name in PURE),
    ]
    assert len(files) > 8
    allowed = tuple(f"capture_canary.{name}" for name in ("trend", *PURE))
    for file in files:
        for name in imported(file):
            pure = name.startswith(allowed) or name.split(".")[0] in STANDARD
            assert pure, f"{file.name} imports {name}"
