"""What we remember: probes with their series, verdict changes, skips, stacks; in SQLite."""

from capture_canary.store.retention import Limits
from capture_canary.store.rows import Change, Event, Probe, Skip, Stacks
from capture_canary.store.store import Store

__all__ = ["Change", "Event", "Limits", "Probe", "Skip", "Stacks", "Store"]
