"""Secrets are planted wherever we read or are told something; everything that we write is then searched for them.

In the environments and command lines of servers, in our own environment, in requests, settings and local variables.
"""

import base64
import json
import os
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import bcrypt
import pytest

from capture_canary.export.api.operations import OPERATIONS
from tests.running import Running, until

MARK = "pl4nted"
"""In each of them, and in nothing else."""
TENANT = {
    "HF_TOKEN": f"hf_{MARK}1",
    "AWS_SECRET_ACCESS_KEY": f"{MARK}2",
    "HTTPS_PROXY": f"http://user:{MARK}3@proxy:3128",
    "KUBE_TOKEN": f"eyJ{MARK}4",
    "HCCL_LOGIC_SUPERPOD_ID": f"{MARK}5",
    "XHCCL_OP_EXPANSION_MODE": f"{MARK}6",
    "HCCL_OP_EXPANSION_MODE": "AIV",
    "PATH": "/bin",
}
OURS = {
    "HF_TOKEN": f"hf_{MARK}7",
    "HTTP_PROXY": f"http://user:{MARK}8@127.0.0.1:9",
    "HTTPS_PROXY": f"http://user:{MARK}9@127.0.0.1:9",
    "PIP_INDEX_URL": f"https://user:{MARK}10@index/",
    "DOCKER_AUTH_CONFIG": f"{MARK}11",
}
PASSWORD = f"{MARK}12"
PAGES = ("/", "/explain", "/metrics", "/healthz", "/readyz", "/api/v1/openapi.json", "/nowhere")


@contextmanager
def tenants(folder: Path) -> Iterator[list[int]]:
    """A vLLM of somebody else: its API server, which was given a key, and a worker with its title."""
    (folder / "vllm").write_text("import time; time.sleep(600)")
    commands = (
        (["VLLM::Worker_TP0", "600"], "/bin/sleep"),
        ([sys.executable, "vllm", "serve", "m", "--api-key", f"{MARK}13"], sys.executable),
    )
    with ExitStack() as undo:
        pids = []
        for argv, executable in commands:
            process = subprocess.Popen(argv, executable=executable, env=TENANT, cwd=folder)
            undo.callback(process.wait)
            undo.callback(process.kill)
            pids.append(process.pid)
        yield pids


def ask(port: int, path: str, password: str) -> str:
    """An answer, headers included, to a request that tells secrets."""
    user = base64.b64encode(f"alice:{password}".encode()).decode()
    request = urllib.request.Request(  # ours
        f"http://127.0.0.1:{port}{path}?token={MARK}14",
        headers={"Authorization": f"Basic {user}", "Cookie": f"session={MARK}15"},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=30) as answer:
            return f"{answer.headers}\n{answer.read().decode()}"
    except urllib.error.HTTPError as error:
        with error:
            return f"{error.headers}\n{error.read().decode()}"


def command(*words: str, environ: Mapping[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "capture_canary.cli", *words],
        env={**os.environ, **OURS, **environ},
        capture_output=True,
        check=False,
        timeout=300,
        cwd=environ["CAPTURE_CANARY_STATE_DIR"],
    )
    return (done.stdout + done.stderr).decode("utf-8", "replace")


def unpacked(archive: Path) -> str:
    with tarfile.open(archive) as tar:
        files = [(one.name, tar.extractfile(one)) for one in tar.getmembers()]
        return "".join(f"{name}\n{file.read().decode()}" for name, file in files if file)


@pytest.fixture(scope="module")
def said(tmp_path_factory) -> dict[str, str]:
    """All that a daemon, its history and the commands say beside such tenants."""
    folder = tmp_path_factory.mktemp("node")
    environ = {"CAPTURE_CANARY_EMULATE_NODE": str(folder / "node")}
    web = folder / "web.yml"
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    web.write_text(f"basic_auth_users:\n  alice: {hashed}\n")
    settings = ("servers.inspect=true", "servers.interval=5s", f"web.config_file={web}")
    found: dict[str, str] = {}
    with tenants(folder) as pids:
        daemon = Running(folder, *settings, environ={**OURS, **environ})
        try:
            until(lambda: "probe_ended" in daemon.log.read_text())
            until(lambda: f'"pid":{pids[0]}' in ask(daemon.port, "/api/v1/status", PASSWORD))
            for path in (
                *PAGES,
                *(f"/api/v1{one.path.replace('{id}', '1')}" for one in OPERATIONS),
            ):
                found[f"GET {path}"] = ask(daemon.port, path, PASSWORD)
                found[f"GET {path} refused"] = ask(daemon.port, path, f"{MARK}16")
            web.write_text(f"basic_auth_users:\n  alice: {PASSWORD}\n")
            until(
                lambda: (
                    ask(daemon.port, "/", PASSWORD) and "web_config_kept" in daemon.log.read_text()
                )
            )
        finally:
            daemon.process.terminate()
            daemon.process.wait(60)
        found["the daemon's log"] = daemon.log.read_text()
        where = {**environ, "CAPTURE_CANARY_STATE_DIR": str(folder / "state")}
        emulate = ("--emulate", "cann=8.5.0,soc=a3")
        for words in (
            ("doctor", *emulate),
            ("doctor", "--json", *emulate),
            ("probe", "--json", *emulate),
            ("history",),
            ("history", "--json"),
            ("report",),
            ("story",),
            ("config", "show"),
            ("config", "show", "--json"),
            ("config", "show", "--set", f"gate.npu_exporter=http://u:{MARK}17@h/metrics"),
            ("run", "--set", f"web.config_file={web}", *emulate),
            ("story", "n", "--prometheus", f"http://u:{MARK}18@h"),
        ):
            found[f"capture-canary {' '.join(words)}".replace(MARK, "…")] = command(
                *words, environ=where
            )
        for name, options in (("bundle", ()), ("whole bundle", ("--no-redaction",))):
            target = folder / f"{name}.tar.gz"
            log = ("--log", str(daemon.log))
            found[f"making the {name}"] = command(
                "bundle", *emulate, *log, "-o", str(target), *options, environ=where
            )
            found[name] = unpacked(target)
    for file in (folder / "state").rglob("*"):
        if file.is_file():
            found[f"state/{file.name}"] = file.read_bytes().decode("latin-1")
    found["pids"] = json.dumps(pids)
    return found


def test_the_tenants_were_looked_at_and_the_settings_refused(said):
    """Else there was nothing to be silent of."""
    worker, front = json.loads(said["pids"])
    servers = {
        one["pid"]: one
        for one in json.loads(said["capture-canary doctor --json --emulate cann=8.5.0,soc=a3"])[
            "node"
        ]["servers"]["servers"]
    }
    assert {worker, front} <= set(servers)
    assert servers[worker]["mode"]["in_force"] == "AIV"
    assert "AIV" in said["GET /"]
    assert "unauthorized" in said["GET / refused"]
    assert "web_config_kept" in said["the daemon's log"]
    assert "is no bcrypt hash" in said["the daemon's log"]
    for refusal in ("a URL with credentials", "no user, query or fragment can be in the address"):
        assert any(refusal in text for text in said.values())
    assert all(text for name, text in said.items() if not name.startswith("state/"))


def test_no_secret_is_in_anything_that_we_say(said):
    told = {name: text.partition(MARK) for name, text in said.items() if MARK in text}
    assert {
        name: f"{before[-80:]}{MARK}{after[:80]}" for name, (before, _, after) in told.items()
    } == {}


@pytest.mark.parametrize("form", ["json", "console"])
@pytest.mark.parametrize("first", ["pass", "import rich.traceback"])
def test_a_traceback_has_no_variables(form, first):
    """rich and structlog would show them."""
    script = f"""
{first}
import sys
from capture_canary.logging import configure_logging, get_logger
configure_logging({form!r})
def step(password):
    token = password + "!"
    raise RuntimeError(f"of {{len(token)}} characters")
try:
    step("".join(["pl4", "nted"]))
except RuntimeError:
    get_logger("x").exception("step_failed")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert "RuntimeError: of 8 characters" in done.stderr
    assert MARK not in done.stderr
