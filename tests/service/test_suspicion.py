"""Whether an earlier probe shares a suspicion."""

from pathlib import Path

import pytest
from tests.builders import make_report

from capture_canary.service.suspicion import suspected
from capture_canary.store import Store

NOW = 1_800_000_000.0
HOUR = 3600.0


@pytest.mark.parametrize(
    ("earlier", "found"),
    [
        ([], None),
        ([("suspect", 2 * HOUR)], 2 * HOUR),
        ([("time_only", HOUR)], HOUR),
        ([("suspect", HOUR - 1)], None),
        ([("suspect", 3 * HOUR), ("suspect", 600)], 3 * HOUR),
        ([("suspect", 9 * HOUR), (None, 2 * HOUR)], None),
        ([(None, 9 * HOUR), ("suspect", 2 * HOUR)], 2 * HOUR),
    ],
)
def test_the_last_probe_that_is_an_hour_old_counts(tmp_path: Path, earlier, found):
    store = Store(tmp_path)
    for cause, age in earlier:
        store.add_probe(make_report("unknown", cause=cause), at=NOW - age, stack="abc")
    store.add_probe(make_report("unknown", cause="suspect"), at=NOW - 5 * HOUR, stack="other")
    assert suspected(store, "abc", now=NOW) == found
    store.close()
