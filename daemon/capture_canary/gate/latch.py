"""Probing latched off on this node, until a person says otherwise.

A probe that left something behind, or two device errors in a row, end probing here: the next one
could only hide or worsen it. The latch outlives restarts, and the file that holds it is the switch:
an operator who has looked at the node deletes it, and the next decision sees that.
"""

import contextlib
import os
from pathlib import Path
from typing import Protocol

import msgspec

from capture_canary import foreign

DEVICE_ERRORS = 2
_LIMIT = 65536


class LatchState(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept."""

    latched: str | None = None
    """Why, as a sentence."""
    at: float | None = None
    """Since when, seconds since 1970."""
    device_errors: int = 0
    """In a row."""


class LatchStore(Protocol):
    """Where the state lives."""

    def load(self) -> LatchState:
        """The state; a fresh one where there is none."""
        ...

    def save(self, state: LatchState) -> None:
        """Keeps it; an OSError where that failed."""

    def how_to_unlatch(self) -> str:
        """What an operator does, as a half sentence."""
        ...


class LatchFile:
    """The state as one small JSON file, apart from the history: that one may be full or broken."""

    def __init__(self, path: Path) -> None:
        """Args: where, usually `probe-latch.json` in the state folder."""
        self._path = path

    def load(self) -> LatchState:
        """The state. A file that can't be read or understood counts as latched."""
        try:
            with self._path.open("rb") as file:
                data = file.read(_LIMIT)
        except FileNotFoundError:
            return LatchState()
        except OSError as error:
            return LatchState(latched=f"{self._path} can't be read: {error.strerror}")
        try:
            return foreign.decode(data, LatchState)
        except ValueError as error:
            return LatchState(latched=f"{self._path} is not a latch file: {error}")

    def save(self, state: LatchState) -> None:
        """Writes it whole or not at all."""
        fresh = self._path.with_suffix(f".{os.getpid()}.new")
        try:
            with fresh.open("wb") as file:
                file.write(msgspec.json.encode(state))
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self._path)
        finally:
            with contextlib.suppress(OSError):
                fresh.unlink()

    def how_to_unlatch(self) -> str:
        """Delete the file."""
        return f"look at the node, then delete {self._path}"


class Latch:
    """The latch of this node."""

    def __init__(self, store: LatchStore) -> None:
        """Args: where its state lives."""
        self._store = store
        self._unsaved: LatchState | None = None
        """State that could not be kept: it holds until this process ends."""

    def why(self) -> str | None:
        """Why probing is off here and how to turn it on again; None: it isn't off."""
        state = self._state()
        if state.latched is None:
            return None
        return f"{state.latched}; to probe again, {self._how(state)}"

    def trip(self, sentence: str, now: float) -> None:
        """Latches. The first reason stays."""
        state = self._state()
        if state.latched is None:
            self._keep(LatchState(latched=sentence, at=now, device_errors=state.device_errors))

    def device_error(self, sentence: str, now: float, limit: int = DEVICE_ERRORS) -> None:
        """A probe ended with a device error; the `limit`th in a row latches."""
        errors = self._state().device_errors + 1
        if errors >= limit:
            self.trip(f"{errors} device errors in a row, the last: {sentence}", now)
        else:
            self._keep(msgspec.structs.replace(self._state(), device_errors=errors))

    def success(self) -> None:
        """A probe ended without a device error: the next one counts from zero."""
        state = self._state()
        if state.device_errors and state.latched is None:
            self._keep(LatchState())

    def _state(self) -> LatchState:
        return self._unsaved or self._store.load()

    def _how(self, state: LatchState) -> str:
        if self._unsaved is state:
            return "look at the node, then restart the daemon (the state folder can't be written)"
        return self._store.how_to_unlatch()

    def _keep(self, state: LatchState) -> None:
        try:
            self._store.save(state)
            self._unsaved = None
        except OSError:
            self._unsaved = state
