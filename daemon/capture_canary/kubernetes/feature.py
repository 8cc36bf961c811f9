"""A feature that calls the API: how often it tries, and what it does about a no or a silence."""

import random
import time
from collections.abc import Callable
from typing import Any

from capture_canary.kubernetes.api import ApiError, DeniedError
from capture_canary.kubernetes.exchange import Feature
from capture_canary.logging import get_logger

FIRST, MOST = 5.0, 300.0
"""Seconds to the next try after the first failure in a row, and at most."""
DENIED = 3600.0
"""Seconds to the next try where it may not: a role may have been mended."""


class Caller:
    """Calls for one feature. Nothing is queued: what could not be said is said as it then is."""

    def __init__(self, name: Feature, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin willing."""
        self.name: Feature = name
        self.off: str | None = None
        """Why it is off."""
        self.failures = 0
        self._clock = clock
        self._row = 0
        self._not_before = 0.0
        self._said = ""
        self._log: Any = get_logger("k8s")

    @property
    def waiting(self) -> bool:
        """Whether it is too soon to try again."""
        return self._clock() < self._not_before

    def call(self, do: Callable[[], None]) -> str | None:
        """Do it; return why it could not be done, None where it was."""
        if self.waiting:
            return self.off or self._said
        try:
            do()
        except ApiError as error:
            self._fail(error)
            return str(error)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            strange = ApiError(f"an object of the API is not as expected: {error!r}")
            self._fail(strange)
            return str(strange)
        if self._row or self.off:
            self._log.info("works_again", feature=self.name)
        self.off, self._row, self._said = None, 0, ""
        return None

    def _fail(self, error: ApiError) -> None:
        self.failures += 1
        self._row += 1
        denied = isinstance(error, DeniedError)
        # A fleet that lost its API server must not come back all at once.
        wait = DENIED if denied else min(MOST, FIRST * 2 ** min(self._row - 1, 10))
        self._not_before = self._clock() + wait * random.uniform(0.5, 1.0)  # noqa: S311  # spreads load
        self.off = str(error) if denied else None
        if not self._said or (denied and self._said != str(error)):
            self._log.warning(
                "denied" if denied else "api_failed", feature=self.name, why=str(error)
            )
        self._said = str(error)
