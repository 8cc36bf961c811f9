"""`capture-canary bundle`: whole, bounded, redacted, and with a manifest that tells the truth."""

import hashlib
import json
import os
import socket
import subprocess
import tarfile
import time
from datetime import timedelta

import pytest
from tests import builders

from capture_canary import cli
from capture_canary.bundle.archive import Archive
from capture_canary.bundle.plogs import MAX_FILES, newest, plogs
from capture_canary.store import Store

ADDRESS, SECRET = "10.11.12.13", "hf_abcdefghijklmnop"


def plog(*times, text="HCCL run"):
    return "".join(
        f"[INFO] HCCL(7,python):2026-11-29-{at}.123.456 [x.cc:1] {text}\n  more of it\n"
        for at in times
    )


@pytest.fixture
def node(tmp_path, monkeypatch):
    """An emulated node with a history, plogs, and a log of ours that says too much."""
    for name in [n for n in os.environ if n.startswith(("CAPTURE_CANARY", "HCCL_", "ASCEND"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HF_TOKEN", SECRET)
    monkeypatch.setenv("HCCL_OP_EXPANSION_MODE", "AIV")
    logs = tmp_path / "ascend/log/run/plog"
    logs.mkdir(parents=True)
    (logs / "plog-7_20261129.log").write_text(
        plog("20:00:00", "22:30:00", "23:00:00", text=f"peer {ADDRESS}")
    )
    (tmp_path / "our.log").write_text(
        f"started on {socket.gethostname()} token={SECRET} {ADDRESS}\n"
    )
    store = Store(tmp_path)
    store.add_probe(builders.make_report(), at=time.time(), stack="abc")
    store.close()
    return tmp_path


def make(folder, *options):
    target = folder / "b.tar.gz"
    code = cli.main(
        [
            "bundle",
            "--emulate",
            "cann=9.0.0,soc=a3",
            "--state-dir",
            str(folder),
            "-o",
            str(target),
            *options,
        ]
    )
    assert code == 0
    with tarfile.open(target) as tar:
        return {
            member.name.partition("/")[2]: tar.extractfile(member).read()  # type: ignore[union-attr]  # all are files
            for member in tar.getmembers()
        }


def test_everything_is_in_it(node):
    files = make(node, "--log", str(node / "our.log"), "--window", "1h")
    manifest = json.loads(files["manifest.json"])
    assert {entry["path"] for entry in manifest["files"]} == set(files) - {"manifest.json"}
    for entry in manifest["files"]:
        assert entry["sha256"] == hashlib.sha256(files[entry["path"]]).hexdigest()
        assert entry["bytes"] == len(files[entry["path"]])
    assert manifest["emulated"] is True
    assert set(manifest["missing"]) <= {"driver.txt"}
    assert b"HCCL_OP_EXPANSION_MODE=AIV" in files["environment.txt"]
    assert b"Ascend910" in files["npu-smi.txt"]
    assert json.loads(files["probes.json"])[0]["report"]["series"]
    cover = files["README.txt"].decode()
    for words in (
        "EMULATED",
        "hcomm 9.0.0",
        "degraded",
        "模拟运行",
        "最近结论",
        "升级到 CANN 9.1.0",
    ):
        assert words in cover


def test_nothing_names_host_address_or_secret(node):
    files = make(node, "--log", str(node / "our.log"))
    for name, data in files.items():
        for word in (SECRET, ADDRESS):
            assert word.encode() not in data, name
    assert socket.gethostname() not in files["our.log"].decode()
    manifest = json.loads(files["manifest.json"])
    assert manifest["redaction"]["address"]["occurrences"] >= 2
    assert manifest["redaction"]["secret"]["occurrences"] >= 1


def test_only_who_asks_gets_names(node):
    files = make(node, "--log", str(node / "our.log"), "--no-redaction")
    assert ADDRESS in files["our.log"].decode()
    assert json.loads(files["manifest.json"])["redaction"] is None
    assert "Nothing was redacted" in files["README.txt"].decode()
    assert SECRET not in files["environment.txt"].decode()


def test_it_keeps_to_its_size(node):
    (node / "our.log").write_text("".join(f"line {n}\n" for n in range(500_000)))
    files = make(node, "--log", str(node / "our.log"), "--max-size", "100kB")
    assert sum(map(len, files.values())) < 110_000
    manifest = json.loads(files["manifest.json"])
    cut = {entry["path"] for entry in manifest["files"] if entry["cut"]}
    assert "our.log" in cut or manifest["missing"]["our.log"] == "the bundle is full"


def test_a_file_keeps_its_end(tmp_path):
    archive = Archive(None, most=10)
    archive.add("a", "0123456789abc")
    archive.add("b", "x")
    archive.write(tmp_path / "x.tar.gz")
    assert archive.entries[0].cut
    assert archive.missing == {"b": "the bundle is full"}
    with tarfile.open(tmp_path / "x.tar.gz") as tar:
        assert tar.extractfile("x/a").read() == b"3456789abc"  # type: ignore[union-attr]  # a file


def test_no_half_of_an_archive_is_left(tmp_path, node, capsys):
    target = tmp_path / "none" / "b.tar.gz"
    options = ["bundle", "--emulate", "cann=9.0.0", "--state-dir", str(node), "-o", str(target)]
    assert cli.main(options) == 2
    assert "No such file" in capsys.readouterr().err
    (tmp_path / "folder.tar.gz").mkdir()
    options[-1] = str(tmp_path / "folder.tar.gz")
    assert cli.main(options) == 2
    assert not list(tmp_path.glob(".bundle.*"))


def test_without_anything_it_says_what_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    code = cli.main(["bundle", "--state-dir", str(tmp_path), "-o", str(tmp_path / "b.tar.gz")])
    assert code == 0
    said = capsys.readouterr().out
    for name in ("probes.json", "npu-smi.txt", "our.log", "plog"):
        assert f"missing: {name}" in said


def test_the_window_of_a_plog():
    text = plog("20:00:00", "22:30:00", "23:00:00")
    assert newest(text, timedelta(hours=1)) == plog("22:30:00", "23:00:00")
    assert newest(text, timedelta(0)) == plog("23:00:00")
    assert newest("no time\nat all\n", timedelta(hours=1)) == "no time\nat all\n"
    assert newest("x:2026-99-99-99:99:99.1\n", timedelta(hours=1)) == "x:2026-99-99-99:99:99.1\n"


def test_a_servers_plogs_are_under_its_pid(node):
    server = subprocess.Popen(
        ["VLLM::Worker_TP0", "60"],  # noqa: S607  # a title, as vLLM sets one
        executable="/bin/sleep",
        env={"PATH": "/bin"},
    )
    try:
        pid = server.pid
        log = node / f"ascend/log/run/plog/plog-{pid}_20261129.log"
        log.write_text(plog("23:00:00", text="the server's"))
        files = make(node)
    finally:
        server.kill()
        server.wait()
    assert b"the server's" in files[f"plog/pid-{pid}/run/plog-{pid}_20261129.log"]
    assert [name for name in files if name.startswith("plog/here/")] == [
        "plog/here/run/plog-7_20261129.log"
    ]


def test_the_newest_plogs_come_first(tmp_path):
    folder = tmp_path / "home/ascend/log/run/plog"
    folder.mkdir(parents=True)
    for number in range(MAX_FILES + 40):
        (folder / f"plog-{number}_{1000 - number}.log").write_text("x")
    found = [name for name, _ in plogs(tmp_path, ["/home"], lambda _: True, timedelta(hours=1))]
    assert found == [f"run/plog-{n}_{1000 - n}.log" for n in range(MAX_FILES)]


def test_plogs_are_found_by_pid_and_never_out_of_the_root(tmp_path):
    folder = tmp_path / "root/home/ascend/log/debug/plog"
    folder.mkdir(parents=True)
    for name in ("plog-7_1.log", "plog-pid_8_1.log", "device-7_1.log", "plog-x_1.log"):
        (folder / name).write_text(plog("22:00:00", text=name))
    (tmp_path / "secret").write_text("the host's")
    (folder / "plog-9_1.log").symlink_to(tmp_path / "secret")
    os.mkfifo(folder / "plog-10_1.log")

    def found(wanted):
        return dict(plogs(tmp_path / "root", ["/home", "/none"], wanted, timedelta(hours=1)))

    assert set(found(lambda pid: pid == 7)) == {"debug/plog-7_1.log"}
    every = found(lambda _: True)
    assert set(every) == {f"debug/plog-{n}_1.log" for n in ("7", "pid_8", "9", "10")}
    assert "the host's" not in "".join(every.values())
    assert "could not be read" in every["debug/plog-10_1.log"]
