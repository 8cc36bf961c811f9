"""Keeps in the history which stacks are on this node: our own, traced ones, and those of the servers seen."""

import time

from capture_canary.export.state import State
from capture_canary.model import Stack
from capture_canary.service.board import Board
from capture_canary.stack.identity import stack_id
from capture_canary.store import Store

NAMING = ("cann", "hcomm")
"""Of a process that may not be looked into only the node's SoC is known: that is no stack yet."""


class StackWatch:
    """Notes what is on the board, whenever that changed."""

    def __init__(self, board: Board, store: Store) -> None:
        """Bind to what is read and written."""
        self._board = board
        self._store = store
        self._then: State | None = None

    def poll(self) -> None:
        """Note the stacks, once servers were looked for; else a restart looks as if they had come and gone."""
        state, then = self._board.view.state, self._then
        if not state.servers.looked_at:
            return
        if (
            then
            and state.stack is then.stack
            and state.judged == then.judged
            and state.servers is then.servers
        ):
            return
        self._then = state
        self._store.note_stacks(on_node(state), at=time.time())


def on_node(state: State) -> dict[str, Stack]:
    """Return the stacks on the node by name."""
    found = [
        state.stack,
        *(report.stack for evidence, report in state.judged if evidence == "trace"),
        *(server.stack for server in state.servers.servers if server.captures),
    ]
    return {
        stack_id(stack): stack
        for stack in found
        if any(name in stack and stack[name].value for name in NAMING)
    }
