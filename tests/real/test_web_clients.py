"""TLS and passwords of the web config file, with the clients that people have: curl and Prometheus."""

import json
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from tests.export.test_webconfig import HASH, TLS
from tests.real.conftest import need
from tests.running import Running, free_port, until

pytestmark = pytest.mark.real
UNTRUSTED, NO_HANDSHAKE = 60, 35
"""Exit codes of curl."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory) -> Iterator[Running]:
    """One that asks for TLS and a password; its authority's certificate is beside it."""
    folder = tmp_path_factory.mktemp("daemon")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(folder / "server.key")
    for blob in issued.cert_chain_pems:
        blob.write_to_path(folder / "server.pem", append=True)
    (folder / "web.yml").write_text(f"{TLS}basic_auth_users:\n  alice: {HASH}\n")
    running = Running(
        folder,
        f"web.config_file={folder}/web.yml",
        environ={"CAPTURE_CANARY_EMULATE_NODE": str(folder / "node")},
    )
    try:
        until(lambda: curl(running, "--user", "alice:secret")[1] == "200")
        yield running
    finally:
        running.process.kill()
        running.process.wait()


def curl(
    running: Running, *options: str, scheme: str = "https", trust: bool = True
) -> tuple[int, str]:
    """The exit code, and the status of the answer."""
    trusted = ["--cacert", str(running.folder / "ca.pem")] if trust else []
    url = f"{scheme}://127.0.0.1:{running.port}/metrics"
    command = [need("curl"), "--silent", "--output", "/dev/null", "--write-out", "%{http_code}"]
    done = subprocess.run(
        [*command, "--noproxy", "*", *trusted, *options, url],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (["--user", "alice:secret"], "200"),
        (["--user", "alice:secret", "--tlsv1.3"], "200"),
        (["--user", "alice:secret", "--tls-max", "1.2"], "200"),
        (["--user", "alice:secret", "--anyauth"], "200"),
        (["--user", "alice:guess"], "401"),
        (["--user", "bob:secret"], "401"),
        (["--user", "alice:secret", "--digest"], "401"),
        (["--header", "Authorization: Bearer secret"], "401"),
        ([], "401"),
    ],
)
def test_curl_gets_in_with_the_password_alone(daemon, options, status):
    assert curl(daemon, *options) == (0, status)


def test_curl_speaks_with_whom_it_trusts_and_with_no_old_tls(daemon):
    assert curl(daemon, "--user", "alice:secret", trust=False)[0] == UNTRUSTED
    assert curl(daemon, "--user", "alice:secret", "--tls-max", "1.1")[0] == NO_HANDSHAKE
    code, status = curl(daemon, "--user", "alice:secret", scheme="http")
    assert (code != 0, status) == (True, "000")


@pytest.mark.parametrize(("password", "up"), [("secret", "1"), ("guess", "0")])
def test_prometheus_scrapes_with_the_password_alone(daemon, tmp_path: Path, password, up):
    port = free_port()
    job = {
        "job_name": "canary",
        "scrape_interval": "1s",
        "scrape_timeout": "1s",
        "scheme": "https",
        "basic_auth": {"username": "alice", "password": password},
        "tls_config": {"ca_file": str(daemon.folder / "ca.pem"), "min_version": "TLS13"},
        "static_configs": [{"targets": [f"127.0.0.1:{daemon.port}"]}],
    }
    config = tmp_path / "prometheus.yml"
    config.write_text(json.dumps({"scrape_configs": [job]}))
    options = [f"--config.file={config}", f"--storage.tsdb.path={tmp_path}/data"]
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(
            [need("prometheus"), *options, f"--web.listen-address=127.0.0.1:{port}"],
            stdout=log,
            stderr=log,
        )
    try:
        assert until(lambda: asked(port, 'up{job="canary"}')) == up
        known = asked(port, "capture_canary_build_info")
        assert known == ("1" if up == "1" else None)
    finally:
        server.kill()
        server.wait()


def asked(port: int, query: str) -> str | None:
    """The value of the first series of an answer; None without one."""
    url = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # ours
            found = json.load(answer)["data"]["result"]
    except OSError:
        return None
    return str(found[0]["value"][1]) if found else None
