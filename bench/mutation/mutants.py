"""The mutants of a module: Cosmic Ray's operators, less those that repeat one another; each is a text of the module."""

import ast
import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard, cast

# Of the dependency group `mutation`, which linters do without.
from cosmic_ray.ast import ast_nodes, get_ast  # pyright: ignore[reportMissingImports]
from cosmic_ray.mutating import mutate_code  # pyright: ignore[reportMissingImports]
from cosmic_ray.operators.provider import OperatorProvider  # pyright: ignore[reportMissingImports]

# Of the twelve operators that could take another's place, one is enough: who misses it misses all.
BINARY = "Add_Sub Sub_Add Mul_Div Div_Mul FloorDiv_Mul Mod_Mul Pow_Mul BitOr_BitAnd BitAnd_BitOr LShift_RShift"
# The neighbour tells whether the bound is tested, the opposite whether the question is.
COMPARISON = (
    "Lt_LtE LtE_Lt Gt_GtE GtE_Gt Lt_GtE LtE_Gt Gt_LtE GtE_Lt Eq_NotEq NotEq_Eq Is_IsNot IsNot_Is"
)
OTHERS = (
    "ReplaceUnaryOperator_Delete_USub ReplaceUnaryOperator_Delete_Not AddNot ReplaceTrueWithFalse ReplaceFalseWithTrue "
    "ReplaceAndWithOr ReplaceOrWithAnd ReplaceBreakWithContinue ReplaceContinueWithBreak ExceptionReplacer "
    "NumberReplacer RemoveDecorator ZeroIterationForLoop"
)
OPERATORS = (
    *(f"ReplaceBinaryOperator_{name}" for name in BINARY.split()),
    *(f"ReplaceComparisonOperator_{name}" for name in COMPARISON.split()),
    *OTHERS.split(),
)

Place = tuple[int, int]
"""Line, from 1, and column, from 0."""


class Mutant(NamedTuple):
    """A module with one thing changed."""

    line: int
    was: str
    """The line or lines that changed, without their indentation."""
    becomes: str
    source: str
    """All of the module."""


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield every mutant of a module; what type checkers watch is left alone."""
    code = path.read_text()
    nodes = list(ast_nodes(get_ast(code)))
    typed = list(_typed(code))
    provider: Any = OperatorProvider()  # it has no types
    for name in OPERATORS:
        operator = provider[name]()
        places = [
            (begin, node) for node in nodes for begin, _end in operator.mutation_positions(node)
        ]
        for occurrence, (begin, node) in enumerate(places):
            # Cosmic Ray takes the bare star of a parameter list for a product.
            if node.type == "operator" and node.parent.type == "parameters":
                continue
            if any(first <= begin < last for first, last in typed):
                continue
            source = cast("str", mutate_code(code, operator, occurrence))  # it named the place
            if _meaning(source) in (None, _meaning(code)):
                continue  # `{*a, / **b}` is none, and 1e+100 is 1e100
            yield Mutant(begin[0], *_changed(code, source), source)


def lines_of(code: str) -> dict[int, range]:
    """Return, by line, the lines of the innermost statement that holds it: of an `if` or a `def` its head only."""
    found: dict[int, range] = {}
    for node in ast.walk(ast.parse(code)):  # the outer ones first
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if isinstance(body, list) else node.end_lineno or node.lineno
            lines = range(node.lineno, max(node.lineno, last) + 1)
            found |= dict.fromkeys(lines, lines)
    return found


def _meaning(code: str) -> str | None:
    """Return what a text says, however it is written; None where it is no Python."""
    try:
        return ast.dump(ast.parse(code))
    except SyntaxError:
        return None


def _typed(code: str) -> Iterator[tuple[Place, Place]]:
    """What type checkers watch: annotations, and whether a class is frozen and takes its fields by name.

    And zip's `strict`, which asserts.
    """
    for node in ast.walk(ast.parse(code)):
        options = [one.value for one in node.keywords] if _has_options(node) else []
        for one in (getattr(node, "annotation", None), getattr(node, "returns", None), *options):
            if isinstance(one, ast.expr):
                yield (
                    (one.lineno, one.col_offset),
                    (one.end_lineno or one.lineno, one.end_col_offset or 0),
                )


def _has_options(node: ast.AST) -> TypeGuard[ast.ClassDef | ast.Call]:
    zips = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "zip"
    return isinstance(node, ast.ClassDef) or zips


def _changed(code: str, mutated: str) -> tuple[str, str]:
    """Return what differs between two texts, as lines of the one and of the other."""
    sides: dict[str, list[str]] = {"-": [], "+": []}
    for line in difflib.ndiff(code.splitlines(), mutated.splitlines()):
        if line[0] in sides:
            sides[line[0]].append(line[2:].strip())
    return "\n".join(sides["-"]), "\n".join(sides["+"])
