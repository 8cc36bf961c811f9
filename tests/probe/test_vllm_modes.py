"""Which cudagraph_mode each vllm-ascend captures in, and that one that it does not is refused."""

import pytest

from capture_canary.probe.vllm import modes


@pytest.mark.parametrize(
    ("version", "wanted"),
    [
        ("0.9.1", "PIECEWISE"),
        ("0.10.2rc1", "PIECEWISE"),
        ("0.11.0rc0", "FULL_DECODE_ONLY"),
        ("0.11.0", "FULL_DECODE_ONLY"),
        ("0.12.0rc1", "FULL"),
        ("0.23.0.post1", "FULL"),
        ("0.30.0rc2", "FULL"),
        ("of nobody knows where", "FULL"),
    ],
)
def test_the_largest_graphs_that_a_version_has(version: str, wanted: str):
    assert wanted == modes.chosen(None, version)


def test_what_is_wanted_is_taken():
    assert "PIECEWISE" == modes.chosen("PIECEWISE", "0.23.0")


def test_a_mode_that_a_version_makes_none_of_is_refused():
    with pytest.raises(modes.ModeError, match=r"0\.11\.0 .* FULL, only in FULL_DECODE_ONLY, PIECE"):
        modes.chosen("FULL", "0.11.0")
