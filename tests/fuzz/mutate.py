"""Makes mutants: of bytes, and of JSON as trees, which keeps most of them past the first check."""

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

DEEP = "a place for brackets without end"
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 255, 1 << 31, 1 << 53, (1 << 63) - 1, 1 << 64, 10**30),
    *(0.5, -0.0, 1e-300, 1e308, -1e308, 253402300799.5),
    *("", " ", "\0", "\ud800", "\x1b[2J", "<script>alert(1)</script>", "a" * 300, "的" * 30, "../" * 9),
    *("NaN", "+Inf", "-Inf", "1e999", "True", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59"),
    *([], {}, [None], {"": None}, DEEP),
)  # fmt: skip


def mutant(
    data: bytes, chance: random.Random, *, tokens: Sequence[bytes] = (), tree: bool = False
) -> bytes:
    """Return the bytes with a few changes; as a JSON `tree` where they are one, mostly."""
    for _ in range(chance.choice((1, 1, 2, 3, 6))):
        grown = tree_mutant(data, chance) if tree and chance.random() < 0.8 else None
        data = grown if grown is not None else _bytes(data, chance, tokens)
    return data


def _bytes(data: bytes, chance: random.Random, tokens: Sequence[bytes]) -> bytes:
    """Change, insert, cut or repeat a piece."""
    at = chance.randrange(len(data) + 1)
    end = min(len(data), at + chance.choice((1, 2, 4, 16, 64, 400)))
    piece = data[at:end]
    new: bytes = chance.choice(
        [
            bytes([chance.randrange(256)]),
            chance.randbytes(len(piece)),
            b"",
            piece * chance.choice((2, 3, 50)),
            bytes(len(piece)),
            *([chance.choice(tokens)] if tokens else [b"\xff"]),
            *([bytes([piece[0] ^ 1 << chance.randrange(8)]) + piece[1:]] if piece else []),
        ]
    )
    return data[:at] + new + data[chance.choice((at, end)) :]


def tree_mutant(data: bytes, chance: random.Random) -> bytes | None:
    """Return the JSON with one node changed; None where it is none."""
    try:
        root = [json.loads(data)]
    except (ValueError, RecursionError):
        return None
    places = [*_places(root)]
    holder, key = chance.choice(places)
    other, other_key = chance.choice(places)
    _changes(holder, key, other[other_key], chance)()
    try:
        text = json.dumps(root[0] if root else None, separators=(",", ":"))
    except (ValueError, RecursionError):
        return None
    depth = chance.choice((3, 200, 900, 1500, 3000))
    return text.replace(json.dumps(DEEP), "[" * depth + "]" * depth).encode()


def _changes(holder: Any, key: Any, other: Any, chance: random.Random) -> Callable[[], object]:
    """Return one of the changes of a node: taken out, replaced, copied, wrapped, nudged."""
    value = holder[key]

    def nudge() -> None:
        nudged = {
            bool: lambda: not value,
            int: lambda: value + chance.choice((-1, 1, 1 << 20, -value * 2)),
            float: lambda: value * chance.choice((-1, 2, 1e9, 1e-9)),
            str: lambda: value[: chance.randrange(len(value) + 1)] + chance.choice(("x", "9", "\0", "é")),
        }.get(type(value), lambda: chance.choice(VALUES))  # fmt: skip
        holder[key] = nudged()

    def copy() -> None:
        if isinstance(holder, list):
            holder.insert(key, json.loads(json.dumps(value)))
        else:
            holder[f"{key}x"] = value

    def replace() -> None:
        holder[key] = chance.choice(VALUES)

    def swap() -> None:
        holder[key] = json.loads(json.dumps(other))

    def wrap() -> None:
        holder[key] = chance.choice(([value], {"x": value}))

    return chance.choice((nudge, nudge, copy, replace, replace, swap, wrap, lambda: holder.pop(key)))  # fmt: skip


def _places(node: Any) -> list[tuple[Any, Any]]:
    """All nodes, each by what holds it and its key there."""
    found: list[tuple[Any, Any]] = []
    todo = [node]
    while todo:
        holder = todo.pop()
        keys = range(len(holder)) if isinstance(holder, list) else list(holder)
        for key in keys:
            found.append((holder, key))
            if isinstance(holder[key], (list, dict)):
                todo.append(holder[key])
    return found
