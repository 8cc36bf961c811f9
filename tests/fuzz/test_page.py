"""The page's table is what the fuzzer counted, of every target there is."""

from docs import generate

from tests.fuzz import results
from tests.fuzz.table import TARGETS


def test_the_page_is_the_record():
    assert results.table() in (generate.DOCS / "fuzzing.md").read_text("utf-8")


def test_every_target_was_run_and_all_of_them_ten_million_times():
    found = results.read().targets
    assert found.keys() == TARGETS.keys()
    assert sum(one.executions for one in found.values()) >= 10_000_000
