"""Each assumption holds on the emulated CANN, and is found not to hold where it was broken on purpose."""

import json
import os
import random
import re
import shutil
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from capture_canary import cli
from capture_canary.config import Config
from capture_canary.config.sections import Gate
from capture_canary.doctor import assumptions, elf, evidence
from capture_canary.doctor.beliefs import ASSUMPTIONS
from capture_canary.doctor.ports import listened_on
from capture_canary.environments import elf as readelf
from capture_canary.native import emulated_cann_dir, tracer_path
from capture_canary.probe import runner
from capture_canary.probe.base import base_environment
from capture_canary.probe.measure import ProbeSettings
from capture_canary.stack import npu_smi

DATA = Path(__file__).parent.parent / "data"
DOCS = Path(__file__).parents[2] / "docs" / "assumptions.md"
A3 = "cann=9.0.0,soc=a3"


@pytest.fixture
def node(tmp_path, monkeypatch):
    """Settings and environment of an emulated node of one's own, its CANN a copy that may be broken."""
    for name in [n for n in os.environ if n.startswith(("CAPTURE_CANARY", "HCCL_", "ASCEND"))]:
        monkeypatch.delenv(name)
    environ = {
        **os.environ,
        "HOME": str(tmp_path),
        "CAPTURE_CANARY_EMULATE_NODE": str(tmp_path / "node"),
    }

    def make(emulation=A3, **more):
        base = base_environment(environ, emulation) | more
        home = tmp_path / "cann"
        shutil.copytree(base["ASCEND_HOME_PATH"], home, symlinks=True)
        base |= {
            "ASCEND_HOME_PATH": str(home),
            "LD_LIBRARY_PATH": str(home / "lib64"),
            "PATH": f"{home / 'bin'}:{os.environ['PATH']}",
        }
        config = Config(
            emulate=emulation,
            state_dir=tmp_path,
            trace_dir=tmp_path,
            lock_file=tmp_path / "lock",
            gate=Gate(),
        )
        return config, base, home

    return make


def answers(found):
    return {one.name: said.holds for one, said in assumptions.answer(found)}


def without_probe(config, base):
    """Files only: a probe on a broken CANN is not what is asked."""
    return evidence.gather(replace(config, paused=True), base)


def measured(config, base):
    found = evidence.gather(config, base)
    assert found.measured, found.why_not
    return found


UNTOLD = {"driver_file", "device_nodes", "exclusive", "streams"}
"""Of real nodes only."""


@pytest.mark.parametrize("emulation", [A3, "cann=9.1.0,soc=a3", "cann=8.5.0,soc=a2"])
def test_all_hold_on_the_emulated_cann(node, emulation):
    config, base, _ = node(emulation)
    found = answers(measured(config, base))
    assert {name for name, holds in found.items() if holds is False} == set()
    assert {name for name, holds in found.items() if holds is None} <= UNTOLD | {
        "aiv_has_no_copies",
        "communicator_hbm",
    }
    assert found["captures_seen"] is found["copies_seen"] is True


BUILT = emulated_cann_dir()


def put(path, source):
    path.unlink()
    path.symlink_to(source)


@pytest.mark.parametrize(
    ("name", "break_it"),
    [
        ("toolkit_file", lambda home: shutil.rmtree(home / f"{os.uname().machine}-linux")),
        ("package_files", lambda home: shutil.rmtree(home / "share/info/hcomm")),
        ("version_order", lambda home: (home / "share/info/hcomm/version.info").write_text("Version=V100R001\n")),
        ("exports", lambda home: put(home / "lib64/libhccl.so", BUILT / "lib64/libhccl_plf.so")),
        ("imports", lambda home: put(home / "lib64/libhccl_plf.so", BUILT / "lib64/libhccl.so")),
        ("binding", lambda home: put(home / "lib64/libhcomm.so", BUILT / "lib64-9.2/libruntime.so")),
        ("destroy_callback", lambda home: put(home / "lib64/libacl_rt.so", BUILT / "lib64-8.5/libacl_rt.so")),
    ],
)  # fmt: skip
def test_broken_files_are_found(node, name, break_it):
    config, base, home = node()
    assert answers(without_probe(config, base))[name] is True
    break_it(home)
    assert answers(without_probe(config, base))[name] is False


@pytest.mark.parametrize("cut", [0, 5, 64, 1000, 20_000])
def test_a_damaged_library_is_an_error_and_nothing_else(tmp_path, cut):
    whole = (BUILT / "lib64/libhccl.so").read_bytes()
    rng = random.Random(cut)  # noqa: S311  # the same damage every time
    for number in range(40):
        data = bytearray(whole[:cut] if number == 0 else whole)
        for _ in range(20 if data else 0):
            data[rng.randrange(len(data)) if number % 2 else rng.randrange(min(len(data), 64))] = (
                rng.randrange(256)
            )
        path = tmp_path / f"{number}.so"
        path.write_bytes(data)
        with suppress(ValueError):
            assert elf.read(path).exports is not None


def test_libraries_that_are_none_cannot_be_told(node):
    config, base, home = node()
    for path in (home / "lib64").glob("*.so"):
        path.unlink()
        path.write_bytes(b"\x7fELF\x02\x01" + os.urandom(200))
    found = answers(without_probe(config, base))
    assert [found[name] for name in ("exports", "imports", "binding", "destroy_callback")] == [
        None
    ] * 4


def test_without_a_probe_what_is_measured_cannot_be_told(node):
    config, base, _ = node()
    found = without_probe(config, base)
    assert "paused" in found.why_not
    said = {one.name: answer for one, answer in assumptions.answer(found)}
    for name in ("captures_seen", "growth_law", "ports", "streams", "soc_name"):
        assert said[name].holds is None
        assert "paused" in said[name].why


def test_a_stack_that_grows_against_its_version(node):
    """The version files say 9.1.0; the code is 9.0.0's."""
    config, base, home = node()
    (home / "share/info/hcomm/version.info").write_text("Version=9.1.0\n")
    assert answers(measured(config, base))["growth_law"] is False


def test_another_soc_than_npu_smi_says(node):
    config, base, home = node("cann=9.0.0,soc=a2")
    table = (DATA / "npu-smi" / "a3-one-npu-busy.txt").read_text()
    (home / "table").write_text(re.sub(r"(?m)^\| 2 .*4242.*$", "", table))
    (home / "bin/npu-smi").unlink()
    (home / "bin/npu-smi").write_text(f"#!/bin/sh\ncat {home}/table\n")
    (home / "bin/npu-smi").chmod(0o755)
    found = answers(measured(config, base))
    assert found["soc_name"] is False
    assert found["default_mode"] is False  # A3 is to take AI_CPU, and this one does not


def test_slow_copies(node):
    config, base, _ = node(CAPTURE_CANARY_EMULATE_FAULT="slow:aclrtMemcpy:1")
    narrow = partial(ProbeSettings, collectives=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evidence, "ProbeSettings", narrow)
        assert answers(measured(config, base))["copy_time"] is False


def test_no_streams_left(node):
    config, base, _ = node(CAPTURE_CANARY_EMULATE_FAULT="fail:aclmdlRICaptureBegin:3:207008")
    assert answers(measured(config, base))["streams"] is False


def test_large_payloads_leave_aiv(node, monkeypatch):
    monkeypatch.setattr(
        evidence, "ProbeSettings", partial(ProbeSettings, shapes=(1 << 19,), collectives=4)
    )
    config, base, _ = node()
    assert answers(measured(config, base))["aiv_has_no_copies"] is False


def test_a_tracer_that_sees_nothing(node, monkeypatch):
    monkeypatch.setattr(runner, "tracer_path", lambda: "")
    config, base, _ = node()
    found = answers(measured(config, base))
    assert found["captures_seen"] is False
    assert found["copies_seen"] is False


def test_hbm_and_ports(node):
    config, base, _ = node()
    found = measured(config, base)
    run = found.measured
    assert run
    assert run.after
    assert run.ports

    def changed(**fields):
        return answers(replace(found, measured=replace(run, **fields)))

    held = replace(
        run.after,
        chips=tuple(replace(c, hbm_used_mb=(c.hbm_used_mb or 0) + 500) for c in run.after.chips),
    )
    assert changed(after=held)["hbm_given_back"] is False
    greedy = replace(
        run.after, chips=tuple(replace(c, hbm_used_mb=60_000) for c in run.after.chips)
    )
    assert changed(during=greedy)["communicator_hbm"] is False
    assert changed(during=run.after)["communicator_hbm"] is None
    assert changed(ports=frozenset({60003}))["ports"] is False
    assert changed(ports=frozenset())["ports"] is None


def findings_with(found, **fields):
    return replace(found, findings=replace(found.findings, **fields))


def test_what_only_real_nodes_have(node):
    config, base, _ = node()
    found = without_probe(config, base)
    npus = npu_smi.parse((DATA / "npu-smi" / "a3-one-npu-busy.txt").read_text())
    real = replace(found.findings.node, npus=npus, nodes=(0, 1))
    assert answers(findings_with(found, emulated=False, node=real))["device_nodes"] is True
    assert (
        answers(findings_with(found, emulated=False, node=replace(real, nodes=(0, 99))))[
            "device_nodes"
        ]
        is False
    )
    assert answers(findings_with(found, emulated=False))["driver_file"] is False
    refused = replace(
        real, npus=None, npus_error="npu-smi info: another container holds the NPUs (-8020)"
    )
    assert answers(findings_with(found, emulated=False, node=refused))["exclusive"] is True
    odd = replace(real, npus=replace(npus, unknown_lines=3))
    assert answers(findings_with(found, node=odd))["npu_smi_table"] is False


def test_two_containers_on_one_npu(node, tmp_path):
    from tests.stack import nodes  # noqa: PLC0415  # this test alone needs it

    config, base, _ = node()
    found = without_probe(config, base)
    workers = [
        {"pid": n, "is": "worker", "in": f"c{n}", "cgroup": "v2-docker", "npus": [1]}
        for n in (8, 9)
    ]
    shared = nodes.look(
        {"containers": {"c8": {}, "c9": {}}, "processes": workers}, tmp_path / "two"
    )
    shared = replace(shared, nodes=(0, 1))
    assert answers(findings_with(found, emulated=False, node=shared))["exclusive"] is False


def test_every_assumption_can_be_broken():
    """By name, somewhere in this file."""
    here = Path(__file__).read_text()
    for one in ASSUMPTIONS:
        broken = re.search(rf'\("{one.name}", lambda|\["{one.name}"\] is (False|True)', here)
        assert broken, one.name


def test_the_command(node, capsys, monkeypatch):
    config, base, _ = node()
    monkeypatch.setenv("HOME", base["HOME"])
    options = ["--emulate", A3, "--set", "paused=true", "--state-dir", str(config.state_dir)]
    assert cli.main(["doctor", "--assumptions", *options]) == 3
    text = capsys.readouterr().out
    assert "EMULATED" in text
    assert "holds          exports" in text
    assert cli.main(["doctor", "--assumptions", "--json", *options]) == 3
    rows = json.loads(capsys.readouterr().out)["assumptions"]
    assert [row["name"] for row in rows] == [one.name for one in ASSUMPTIONS]


def test_the_page_has_a_line_for_each():
    page = DOCS.read_text()
    for one in ASSUMPTIONS:
        assert f"| `{one.name}` | {one.belief} | {one.source} |" in page
    assert page.count("| `") == len(ASSUMPTIONS)


@pytest.mark.parametrize("path", sorted((BUILT / "lib64").glob("*.so")), ids=lambda path: path.name)
def test_libraries_are_read_as_readelf_reads_them(path):
    if not (shutil.which("readelf") or shutil.which("llvm-readelf")):
        pytest.skip("readelf is not here")
    ours, theirs = elf.read(path), readelf.read(path)
    assert set(theirs.asked) <= ours.imports
    functions = {name for name in theirs.defined if not name.startswith("_")}
    assert functions >= {name for name in ours.exports if not name.startswith("_")}
    assert theirs.needed


def test_the_tracer_does_not_bind_inside():
    assert not elf.read(Path(tracer_path())).symbolic


def test_ports_of_processes():
    import socket  # noqa: PLC0415  # this test alone needs it

    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        assert port in listened_on([os.getpid()])
        assert port not in listened_on([1 << 22])
