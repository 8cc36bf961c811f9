"""Whether an earlier probe found the time of captures growing: a verdict by time alone takes two, an hour apart."""

from capture_canary.store import Store
from capture_canary.trend.rows import REPEAT_SECONDS

_GROWING = ("suspect", "time_only")
_LOOK_BACK = 100


def suspected(store: Store, stack: str, *, now: float) -> float | None:
    """Return how many seconds ago the last probe of this stack ended, of those old enough, if its time grew.

    Only that one counts: a suspicion that a later probe did not share is over.
    """
    ages = (
        (now - row.at, row.cause)
        for row in store.probes(limit=_LOOK_BACK)
        if row.stack == stack and row.evidence == "probe"
    )
    age, cause = next((one for one in ages if one[0] >= REPEAT_SECONDS), (0.0, None))
    return age if cause in _GROWING else None
