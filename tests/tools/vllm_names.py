"""Whether each version of vllm-ascend has the names that probe/vllm/names.py looks for, read in its own source.

usage: python -m tests.tools.vllm_names WHEEL…     (pip download --no-deps vllm-ascend==X)

Nothing is imported or run: a wheel's files are parsed.
"""

import ast
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

WRAPPERS = "vllm_ascend/compilation/acl_graph.py"
BACKENDS = "vllm_ascend/compilation/piecewise_backend.py"
RUNNER = "vllm_ascend/worker/model_runner_v1.py"
V2 = "vllm_ascend/worker/v2/model_runner.py"
LOOKED_FOR = {
    WRAPPERS: (
        "ACLGraphWrapper",
        "concrete_aclgraph_entries",
        "first_run_finished",
        "_acl_graph_wrappers",
        "_all_instances",
        "_graph_params",
        "_mtp_graph_params",
        "_draft_graph_params",
        "_draft_graph_prefill_params",
    ),
    BACKENDS: (
        "NPUPiecewiseBackend",
        "concrete_size_entries",
        "aclgraph",
        "num_finished_warmup",
    ),
    RUNNER: ("capture_model", "graph_capture", "initialize_aclgraph_capture"),
    V2: ("cudagraph_manager",),
}


def names(source: str) -> set[str]:
    """Return every name that a source defines or assigns to, attributes included."""
    return set(_names(ast.parse(source)))


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef() | ast.FunctionDef():
                yield node.name
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr


def rows(wheels: list[str]) -> Iterator[str]:
    """Yield a row a wheel: of each file, the names it has."""
    yield "| wheel | " + " | ".join(LOOKED_FOR) + " |"
    yield "| --- |" + " --- |" * len(LOOKED_FOR)
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as opened:
            files = set(opened.namelist())
            cells = []
            for file, wanted in LOOKED_FOR.items():
                found = names(opened.read(file).decode()) if file in files else None
                has = [name for name in wanted if found is not None and name in found]
                cells.append("no such file" if found is None else ", ".join(has) or "none")
        yield f"| {Path(wheel).name.split('-')[1]} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    sys.stdout.writelines(f"{row}\n" for row in rows(sys.argv[1:]))
