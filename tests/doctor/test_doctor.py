"""`capture-canary doctor`: one screen, JSON, and an exit code, without NPU, root, Docker or Kubernetes."""

import json
import os

import msgspec
import pytest
from tests.stack import nodes

from capture_canary import cli
from capture_canary.config import Config
from capture_canary.doctor.findings import Findings, find
from capture_canary.doctor.screen import WIDTH, screen
from capture_canary.gate.model import Decision
from capture_canary.stack.node import Places
from capture_canary.stack.processes import Finder
from capture_canary.trend.texts import LANGUAGES


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [
        name for name in os.environ if name.startswith(("CAPTURE_CANARY", "HCCL_", "ASCEND"))
    ]:
        monkeypatch.delenv(name)
    return tmp_path


def findings(about, folder):
    """What doctor would find on a node of the corpus."""
    node = nodes.look(about, folder)
    config = Config(state_dir=folder, trace_dir=folder, lock_file=folder / "lock")
    own = find(
        config,
        {"PATH": ""},
        places=Places(root=folder / "own", proc=folder / "proc", dev=folder / "dev"),
    )
    return msgspec.structs.replace(own, node=node)


@pytest.mark.parametrize("about", nodes.NODES, ids=lambda about: about["name"])
def test_every_node_of_the_corpus_fits_a_screen(about, tmp_path):
    found = findings(about, tmp_path)
    for language in LANGUAGES:
        text = screen(found, language)
        assert all(len(line) <= WIDTH for line in text.splitlines())
        assert len(text.splitlines()) < 60
        assert all(c.isprintable() or c == "\n" for c in text)
        assert "hf_secret" not in text
    again = msgspec.json.decode(msgspec.json.encode(found), type=Findings)
    assert again == found


def test_each_server_is_judged_and_advised(tmp_path):
    found = findings(nodes.NODES[0], tmp_path)
    # npu-smi is not there for `find`: what each would be told without a SoC
    assert {one.pid: one.outlook for one in found.expected} == {101: "unknown", 102: "unknown"}
    assert all("SoC is not known" in one.advice["en"] for one in found.expected)


def run(home, capsys, *options):
    code = cli.main(["doctor", "--state-dir", str(home), "--proc", str(home / "proc"), *options])
    return code, capsys.readouterr().out


def test_on_an_emulated_node_with_servers(home, capsys):
    about = {
        "containers": {"c1": {"cann": {"toolkit": "9.0.0"}}},
        "processes": [
            {
                "pid": 8,
                "is": "serve",
                "in": "c1",
                "cgroup": "v2-containerd",
                "options": ["--enable-expert-parallel"],
            },
            {
                "pid": 9,
                "is": "worker",
                "in": "c1",
                "cgroup": "v2-containerd",
                "ppid": 8,
                "environ": "wiped",
            },
        ],
    }
    nodes.build(about, home)
    code, text = run(home, capsys, "--emulate", "cann=9.1.0,soc=a3")
    assert code == 1
    flat = " ".join(text.split())
    assert "EMULATED" in text
    assert "16 chips of A3" in text
    assert (
        "the servers run hcomm 9.0.0, we have 9.1.0: a probe of ours says nothing of them" in flat
    )
    assert "runs hcomm 9.0.0 on a3 with AI_CPU in force: each graph" in flat
    assert "AIV is no way out here: the server runs several communicators" in flat
    assert "A probe may run now" in flat
    assert "It would measure the SoC's default (servers: default)" in flat
    _, chinese = run(home, capsys, "--emulate", "cann=9.1.0,soc=a3", "--language", "zh")
    assert "此处不能改用 AIV" in chinese


def test_json_has_everything(home, capsys):
    nodes.build({"containers": {}}, home)
    code, text = run(home, capsys, "--emulate", "cann=9.1.0,soc=a3", "--json")
    found = json.loads(text)
    assert code == 0
    assert found["emulated"] is True
    assert found["node"]["stack"]["hcomm"]["value"] == "9.1.0"
    assert found["node"]["exposed"] is False
    assert found["gate"]["allowed"] is True


@pytest.mark.parametrize(
    ("emulation", "code"), [("cann=9.0.0,soc=a3", 1), ("cann=9.0.0,soc=950", 3)]
)
def test_without_servers_our_own_stack_decides(home, capsys, emulation, code):
    nodes.build({"containers": {}}, home)
    assert run(home, capsys, "--emulate", emulation)[0] == code


def test_on_a_bare_machine_it_says_what_would_show_more(home, capsys, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    code, text = run(home, capsys, "--set", f"trace_dir={home}/none")
    assert code == 3
    flat = " ".join(text.split())
    for words in (
        "nothing of CANN is installed here",
        "mount npu-smi",
        "capture-canary exec",
        "proc: No such file",
    ):
        assert words in flat


def test_settings_that_are_none_are_refused(home, capsys):
    assert run(home, capsys, "--set", "servers.inspekt=true")[0] == 2


def test_the_docs_name_every_opt_in():
    permissions = (nodes.DATA.parent.parent / "docs" / "permissions.md").read_text()
    for name in (
        "servers.inspect",
        "servers.docker_socket",
        "servers.kubelet_socket",
        "CAP_SYS_PTRACE",
        "hostPID",
    ):
        assert name in permissions


def test_a_decision_is_part_of_it(tmp_path):
    assert isinstance(findings(nodes.NODES[0], tmp_path).gate, Decision)
    assert Finder(tmp_path / "none").look(nodes={}, soc=None).unseen
