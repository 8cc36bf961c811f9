"""Variables: ours, Kubernetes's, and mistakes."""

import re
from pathlib import Path

import pytest

from capture_canary.config import Config, ConfigError, combine
from capture_canary.config.environment import OTHERS, is_service_link
from capture_canary.config.keys import keys, sections

# What kubelet injects for the Services capture-canary and capture-canary-web, of one and two ports.
LINKS = {
    "CAPTURE_CANARY_SERVICE_HOST": "10.0.0.1",
    "CAPTURE_CANARY_SERVICE_PORT": "9877",
    "CAPTURE_CANARY_SERVICE_PORT_METRICS": "9877",
    "CAPTURE_CANARY_PORT": "tcp://10.0.0.1:9877",
    "CAPTURE_CANARY_PORT_9877_TCP": "tcp://10.0.0.1:9877",
    "CAPTURE_CANARY_PORT_9877_TCP_PROTO": "tcp",
    "CAPTURE_CANARY_PORT_9877_TCP_PORT": "9877",
    "CAPTURE_CANARY_PORT_9877_TCP_ADDR": "10.0.0.1",
    "CAPTURE_CANARY_WEB_SERVICE_HOST": "10.0.0.2",
    "CAPTURE_CANARY_WEB_SERVICE_PORT_HTTPS": "443",
    "CAPTURE_CANARY_WEB_PORT": "udp://10.0.0.2:53",
    "CAPTURE_CANARY_WEB_PORT_53_UDP_ADDR": "10.0.0.2",
}


def of(environ: dict[str, str]) -> Config:
    return combine(None, environ, {}, privileged=True).config


def test_service_links_say_nothing():
    assert of(LINKS) == of({})


def test_the_products_other_variables_are_no_settings():
    assert of(dict.fromkeys(OTHERS, "x")) == of({})


def test_variables_of_others_are_none_of_ours():
    assert of({"CAPTURE": "x", "CANARY_MODE": "x", "capture_canary_mode": "x"}) == of({})


def test_no_key_of_ours_can_be_a_service_link():
    names = [key.variable for key in keys().values()]
    names += [f"CAPTURE_CANARY_{name.upper()}" for name in sections()]
    assert not [name for name in names if is_service_link(name)]


def test_a_key_wins_over_the_service_link_that_it_may_look_like():
    assert of({"CAPTURE_CANARY_PROBE__RANKS": "4"} | LINKS).probe.ranks == 4


@pytest.mark.parametrize(
    ("variable", "hint"),
    [
        ("CAPTURE_CANARY_PUASED", "; did you mean CAPTURE_CANARY_PAUSED?"),
        ("CAPTURE_CANARY_PROBE_INTERVAL", "; did you mean CAPTURE_CANARY_PROBE__INTERVAL?"),
        ("CAPTURE_CANARY_REPORT", ""),
        ("CAPTURE_CANARY_GATE", ""),
        ("CAPTURE_CANARY_", ""),
        ("CAPTURE_CANARY_XPORT_1_TCP", ""),
    ],
)
def test_a_mistyped_variable_is_an_error(variable: str, hint: str):
    with pytest.raises(ConfigError, match=f"^{variable}: is no setting") as error:
        of({variable: "true"})
    assert str(error.value).endswith(hint) or not hint


def test_the_contracts_names():
    assert keys()["state_dir"].variable == "CAPTURE_CANARY_STATE_DIR"
    assert keys()["trace_dir"].variable == "CAPTURE_CANARY_TRACE_DIR"
    assert keys()["emulate"].variable == "CAPTURE_CANARY_EMULATE"
    assert keys()["probe.interval"].variable == "CAPTURE_CANARY_PROBE__INTERVAL"


def test_every_variable_that_some_part_reads_is_known():
    daemon = Path(__file__).parents[2] / "daemon"
    sources = [path for path in daemon.rglob("*") if path.suffix in (".py", ".c", ".h")]
    assert len(sources) > 20
    read = {
        name
        for path in sources
        for name in re.findall(r'"(CAPTURE_CANARY_[A-Z_]*[A-Z])"', path.read_text())
    }
    known = OTHERS | {key.variable for key in keys().values()}
    assert read - known == set()
    assert "CAPTURE_CANARY_TRACE_DIR" in read
