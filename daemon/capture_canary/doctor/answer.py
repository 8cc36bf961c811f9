"""The answer to a question of fact."""

from typing import NamedTuple


class Answer(NamedTuple):
    """Whether an assumption holds here (None: cannot tell), and why one says so."""

    holds: bool | None
    why: str
