"""File, then environment, then flags; and who said what."""

from pathlib import Path

import pytest

from capture_canary.config import (
    Config,
    ConfigError,
    Duration,
    Effective,
    File,
    Source,
    combine,
    find_config,
    load,
    places,
)
from capture_canary.config.keys import build, keys, value_of


def of(
    text: str, environ: dict[str, str] | None = None, flags: dict[str, str] | None = None
) -> Effective:
    return combine(File("f.yaml", text.encode()), environ or {}, flags or {}, privileged=True)


def problem(
    text: str, environ: dict[str, str] | None = None, flags: dict[str, str] | None = None
) -> str:
    with pytest.raises(ConfigError) as error:
        of(text, environ, flags)
    return str(error.value)


def test_nothing_said_is_the_model():
    effective = combine(None, {}, {}, privileged=True)
    assert effective.config == Config()
    assert set(effective.sources) == set(keys())
    assert set(effective.sources.values()) == {Source("default", "built in")}


def test_the_later_wins_and_each_is_told():
    text = "probe:\n  interval: 1h\n  ranks: 4\nlisten: :1\n"
    environ = {"CAPTURE_CANARY_PROBE__INTERVAL": "2h", "CAPTURE_CANARY_LISTEN": ":2"}
    effective = of(text, environ, {"listen": ":3"})
    assert effective.config.probe.interval == Duration.parse("2h")
    assert effective.config.probe.ranks == 4
    assert effective.config.listen == ":3"
    assert effective.sources["probe.interval"] == Source(
        "environment", "CAPTURE_CANARY_PROBE__INTERVAL"
    )
    assert effective.sources["probe.ranks"] == Source("file", "f.yaml:3")
    assert effective.sources["listen"] == Source("flag", "--listen")
    assert effective.sources["paused"].kind == "default"


def test_a_section_keeps_what_a_later_source_does_not_say():
    config = of("gate: {policy: prefer-idle}\n", {"CAPTURE_CANARY_GATE__RETRY": "1m"}).config
    assert config.gate.policy == "prefer-idle"
    assert config.gate.retry == Duration(60)


def test_yaml_types_are_the_models():
    config = of("paused: True\nlogs: [no, 0x10]\nlisten: ':80'\nprobe: {shapes: [1, '2']}\n").config
    assert config.paused is True
    assert config.logs == ("no", "0x10")
    assert config.probe.shapes == (1, 2)


def test_lists_in_the_environment_are_split_at_commas():
    environ = {"CAPTURE_CANARY_PROBE__SHAPES": "8, 16", "CAPTURE_CANARY_LOGS": ""}
    config = of("logs: [a]\n", environ).config
    assert config.probe.shapes == (8, 16)
    assert config.logs == ()


def test_null_takes_a_value_back():
    config = of("emulate: soc=a3\n", {"CAPTURE_CANARY_EMULATE": ""}).config
    assert config.emulate is None
    assert "paused: has no value" in problem("paused:\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mod: probe\n", "f.yaml:1: unknown key 'mod'; did you mean mode?"),
        ("state-dir: /x\n", "f.yaml:1: unknown key 'state-dir'; did you mean state_dir?"),
        ("\nprobe:\n  intervall: 1h\n", "f.yaml:3: unknown key 'probe.intervall'; did you mean probe.interval?"),
        ("interval: 1h\n", "f.yaml:1: unknown key 'interval'; did you mean probe.interval?"),
        ("probe: {retry: 1h}\n", "f.yaml:1: unknown key 'probe.retry'; did you mean gate.retry?"),
        ("probe.interval: 1h\n", "f.yaml:1: unknown key 'probe.interval'; did you mean probe.interval?"),
        ("zzz: 1\n", "f.yaml:1: unknown key 'zzz'"),
        ("mode: prob\n", "f.yaml:1: mode: 'prob' is not one of observe, probe, job"),
        ("paused: yes\n", "f.yaml:1: paused: 'yes' is not true or false"),
        ("state_dir: x\n", "f.yaml:1: state_dir: 'x' is not an absolute path"),
        ("probe:\n  ranks: 1\n", "f.yaml:2: probe.ranks: '1' is not a whole number from 2 to 64"),
        ("probe: {interval: 6}\n", "f.yaml:1: probe.interval: '6' is not a duration from 1s to 30d"),
        ("probe: {interval: 1ms}\n", "f.yaml:1: probe.interval: '1ms' is not a duration from"),
        ("gate: {reserve_hbm: 9TiB}\n", "f.yaml:1: gate.reserve_hbm: '9TiB' is not a size from 0B to 1TiB: too much"),
        ("probe: {shapes: [1, 1]}\n", "f.yaml:1: probe.shapes: ['1', '1'] is not a list, each a whole number from 1"),
        ("probe: {shapes: 1}\n", "f.yaml:1: probe.shapes: '1' is not a list, each"),
        ("probe: {shapes: {a: 1}}\n", "f.yaml:1: probe.shapes: expects a list, each"),
        ("mode: [probe]\n", "f.yaml:1: mode: ['probe'] is not one of observe"),
        ("verdict: {floor_ratio: nan}\n", "f.yaml:1: verdict.floor_ratio: 'nan' is not a number from 0.0 to"),
        ("listen: 9877\n", "f.yaml:1: listen: '9877' is not HOST:PORT or :PORT"),
        ("listen: '::1:80'\n", "f.yaml:1: listen: '::1:80' is not HOST:PORT or :PORT: its host is neither"),
        ("emulate: 8.5\n", "f.yaml:1: emulate: '8.5' is not key=value"),
        ("probe: {cron: '0 3 * * 1-5'}\n", "f.yaml:1: probe.cron: '0 3 * * 1-5' is not a cron line"),
        ("probe: {deadline: 2m, interval: 3m, jitter: 1m}\n", "f.yaml:1: probe.deadline: 2m is more than half of"),
        ("probe: {interval: 1h, jitter: 2h}\n", "f.yaml:1: probe.jitter: 2h is more than probe.interval (1h)"),
        ("probe: {interval: 1m}\n", "the default: probe.deadline: 2m is more than half of probe.interval (1m)"),
        ("probe: {devices: [1]}\n", "f.yaml:1: probe.devices: names fewer NPUs than probe.ranks (2)"),
        ("gate: {budget: 1m}\n", "f.yaml:1: gate.budget: 1m does not allow one probe"),
        ("web: {textfile: /a/b.txt}\n", "f.yaml:1: web.textfile: must end in .prom"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_file_line_and_key(text: str, expected: str):
    assert problem(text).startswith(expected)


def test_all_that_is_wrong_is_told_at_once():
    text = problem(
        "mod: 1\npaused: 2\n", {"CAPTURE_CANARY_LISTEN": "x"}, {"mode": "x", "nope.y": "1"}
    )
    assert [line.split(": ")[0] for line in text.splitlines()] == [
        "f.yaml:1",
        "f.yaml:2",
        "CAPTURE_CANARY_LISTEN",
        "--mode",
        "--set",
    ]


def test_credentials_in_a_url_are_refused_and_not_repeated():
    text = problem("gate: {npu_exporter: 'http://user:secret@host/metrics'}\n")
    assert "with credentials" in text
    assert "secret" not in text
    assert of("gate: {npu_exporter: 'http://h:8082/metrics'}\n").config.gate.npu_exporter


@pytest.mark.parametrize(
    "listen", [":9877", "0.0.0.0:80", "[::1]:80", "localhost:0", "node-1.x:65535"]
)
def test_addresses_that_can_be_listened_on(listen: str):
    assert of(f"listen: '{listen}'\n").config.listen == listen


def test_every_value_survives_being_shown():
    config = of("probe: {expansion_mode: AIV, devices: [0, 1]}\nlogs: [/a, /b]\n").config
    environ = {key.variable: key.text(value_of(config, name)) for name, key in keys().items()}
    assert combine(None, environ, {}, privileged=True).config == config


def test_building_from_nothing_gives_defaults():
    assert build({}) == Config()


def test_without_privilege_the_folders_are_xdgs():
    environ = {"HOME": "/home/u", "XDG_RUNTIME_DIR": "/run/user/7", "XDG_STATE_HOME": "relative"}
    effective = combine(None, environ, {}, privileged=False)
    assert effective.config.state_dir == Path("/home/u/.local/state/capture-canary")
    assert effective.config.trace_dir == Path("/run/user/7/capture-canary/traces")
    assert effective.config.lock_file == Path("/run/user/7/capture-canary/probe.lock")
    assert effective.sources["state_dir"] == Source("default", "XDG base directories")
    bare = combine(None, {"XDG_STATE_HOME": "/s"}, {}, privileged=False).config
    assert bare.trace_dir == Path("/s/capture-canary/run/traces")
    homeless = combine(None, {}, {}, privileged=False).config
    assert homeless.state_dir == Path("/var/lib/capture-canary")


def test_the_file_is_the_named_one_or_the_variables_or_the_users(tmp_path: Path):
    own = tmp_path / "capture-canary" / "config.yaml"
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    own.parent.mkdir()
    own.write_text("paused: true\n")
    assert places.default_config(environ, privileged=False) == own
    assert find_config(Path("/x"), {"CAPTURE_CANARY_CONFIG": "/y"}) == Path("/x")
    assert find_config(None, {"CAPTURE_CANARY_CONFIG": "/y"}) == Path("/y")
    assert load(own, {}, {}).config.paused
