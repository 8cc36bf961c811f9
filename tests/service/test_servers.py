"""What the node's servers tell decides what a probe measures, and is exported."""

import pytest
from tests import builders
from tests.stack import nodes

from capture_canary import cli
from capture_canary.commands import measuring
from capture_canary.commands import probe as command
from capture_canary.config import Config
from capture_canary.config.probing import Probe
from capture_canary.export.metrics import StateCollector
from capture_canary.export.state import State
from capture_canary.model import Fact
from capture_canary.service.settings import configured_mode
from capture_canary.stack.processes import Finder
from capture_canary.stack.servers import Servers, about_them

AIV = {"HCCL_OP_EXPANSION_MODE": "AIV"}


def look(folder, *processes, cann="9.0.0"):
    about = {
        "containers": {"c1": {"cann": {"toolkit": cann}}},
        "processes": [
            {"pid": n, "is": "worker", "in": "c1", "cgroup": "v2-docker", **one}
            for n, one in enumerate(processes, 9)
        ],
    }
    return Finder(nodes.build(about, folder).proc, inspect=True).look(nodes={}, soc="a3")


@pytest.mark.parametrize(
    ("processes", "wanted"),
    [
        ([{"environ": AIV}], ("AIV", "servers: environment")),
        ([{}], (None, "servers: default")),
        ([{"environ": AIV}, {}], (None, "servers: default (of several modes)")),
        ([{"environ": "denied"}], ("HOST", "probe.expansion_mode")),
        ([{"is": "training", "npus": [1], "environ": AIV}], ("HOST", "probe.expansion_mode")),
        ([{"is": "serve", "environ": AIV}], ("HOST", "probe.expansion_mode")),
        ([], ("HOST", "probe.expansion_mode")),
    ],
)
def test_the_servers_mode_is_what_a_probe_measures(tmp_path, processes, wanted):
    config = Config(probe=Probe(expansion_mode="HOST"))
    found = look(tmp_path, *processes)
    assert configured_mode(config, {}, found.servers) == wanted


def test_without_servers_the_setting_and_then_the_environment():
    assert configured_mode(Config(), AIV) == ("AIV", "HCCL_OP_EXPANSION_MODE")
    assert configured_mode(Config(), {}) == (None, "default of the SoC")


def exported(state):
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in StateCollector(lambda: state).collect()
        for sample in family.samples
    }


def value(samples, name, **labels):
    return [
        found
        for (one, *pairs), found in samples.items()
        if one == f"capture_canary_{name}" and labels.items() <= dict(pairs).items()
    ]


def test_servers_are_exported(tmp_path):
    found = look(tmp_path, {"environ": AIV}, {"environ": AIV}, {})
    ours = {"hcomm": Fact(value="9.1.0", source="x"), "soc": Fact(value="a3", source="x")}
    about, why = about_them(ours, found.servers)
    assert about is False
    assert "the servers run hcomm 9.0.0, we have 9.1.0" in why
    state = State(version="0", emulated=False, stack=ours, servers=found, about_servers=about)
    samples = exported(state)
    assert value(samples, "servers", mode="AIV", source="servers: environment") == [2.0]
    assert value(samples, "mitigation", mode="AIV", source="servers: environment") == [1.0]
    assert value(samples, "mitigation", mode="AI_CPU", source="servers: default") == [0.0]
    assert value(samples, "exposed") == [1.0]
    assert value(samples, "probe_about_servers") == [0.0]
    assert value(samples, "stack_info", hcomm="9.0.0") == [1.0]


def test_nothing_known_is_nothing_exported():
    samples = exported(State(version="0", emulated=False, stack={}, servers=Servers()))
    assert value(samples, "probe_about_servers") == []
    assert value(samples, "servers") == []


def test_hostile_names_are_bounded(tmp_path):
    """A node full of strangers with modes of their own invention makes few series, with short labels."""
    found = look(
        tmp_path,
        *({"npus": [1], "environ": {"HCCL_OP_EXPANSION_MODE": f"{n}" * 200}} for n in range(30)),
    )
    assert len(found.servers) == 30
    samples = exported(State(version="0", emulated=False, stack={}, servers=found))
    assert len(samples) < 150
    assert all(len(text) <= 100 for _, *pairs in samples for _, text in pairs)


def test_the_command_measures_the_servers_mode_and_says_whom_it_is_not_about(
    tmp_path, monkeypatch, capsys
):
    """`capture-canary probe` by hand: on a machine that has no CANN, beside a server that runs hcomm 9.0.0."""
    found = look(tmp_path, {"environ": AIV})
    asked = []

    class Fake:
        def __init__(self, settings, *_args, **_more):
            asked.append(settings)

        def run(self):
            return builders.make_report()

    monkeypatch.setattr(command, "_servers", lambda: found.servers)
    monkeypatch.setattr(command, "Probe", Fake)
    monkeypatch.setattr(measuring, "end_in_good_order", lambda: None)  # signals are pytest's
    cli.main(["probe", "--json"])
    assert (asked[0].mode, asked[0].mode_source) == ("AIV", "servers: environment")
    said = " ".join(capsys.readouterr().err.split())
    assert "the servers run hcomm 9.0.0, we have 8.5.0" in said
