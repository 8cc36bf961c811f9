"""The web config file: as other exporters have it, checked at the start, followed while it runs."""

import ssl
import subprocess
import sys
from pathlib import Path

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st
from tests.export.showing import Daemon, connected_tls, get, serving

from capture_canary.config.problems import ConfigError
from capture_canary.export import webconfig
from capture_canary.export.webconfig import Followed, read

HASH = "$2b$04$XGfnjZnljQkEPvijNLeqreM3FnSuPGBP.PIWPl94klSDq9jz/7GES"
"""Of `secret`."""
TLS = "tls_server_config:\n  cert_file: server.pem\n  key_file: server.key\n"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def file(tmp_path: Path, authority: trustme.CA) -> Path:
    """A place for the file, with a certificate beside it."""
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(tmp_path / "server.key")
    for blob in issued.cert_chain_pems:
        blob.write_to_path(tmp_path / "server.pem", append=True)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    return tmp_path / "web.yml"


def test_an_empty_file_asks_for_nothing(file):
    file.write_text("# nothing\n")
    assert (read(file).tls, read(file).users) == (None, {})


def test_an_example_of_the_exporter_toolkit(file):
    file.write_text(
        f"{TLS}  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.pem\n"
        "  min_version: TLS13\n  max_version: TLS13\n"
        f"http_server_config:\n  http2: true\nbasic_auth_users:\n  alice: {HASH}\n  'bob': '{HASH}'\n"
    )
    found = read(file)
    assert found.tls is not None
    assert found.tls.verify_mode == ssl.CERT_REQUIRED
    assert found.tls.minimum_version == ssl.TLSVersion.TLSv1_3
    assert found.users == {"alice": HASH.encode(), "bob": HASH.encode()}
    assert {one.name for one in found.files} == {"web.yml", "server.pem", "server.key", "ca.pem"}


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("tls_server_config:\n  cert_file: server.pem\n", 2, "tls_server_config needs key_file"),
        (TLS.replace("server.key", "none"), 2, "cert_file and key_file cannot be used: No such"),
        (TLS.replace("server.key", "ca.pem"), 2, "cert_file and key_file cannot be used"),
        (f"{TLS}  min_version: SSL3\n", 4, "min_version is 'SSL3'; expects one of TLS12, TLS13"),
        (f"{TLS}  client_auth_type: RequireAnyClientCert\n", 4, "client_auth_type is 'Require"),
        (f"{TLS}  client_auth_type: RequireAndVerifyClientCert\n", 4, "needs client_ca_file"),
        (f"{TLS}  client_ca_file: ca.pem\n", 4, "says nothing without client_auth_type"),
        (
            f"{TLS}  client_ca_file: server.key\n  client_auth_type: VerifyClientCertIfGiven\n",
            4,
            "client_ca_file cannot be used",
        ),
        (f"{TLS}  cipher_suites: [x]\n", 4, "unknown key 'tls_server_config.cipher_suites'"),
        (f"{TLS}  keyfile: x\n", 4, "did you mean key_file?"),
        (f"{TLS}  key_file: x\n", 4, "tls_server_config.key_file is there twice"),
        ("tls_server_config: yes\n", 1, "tls_server_config expects keys with values"),
        ("- a\n", 1, "expects keys with values"),
        ("basic_auth_users:\n  alice: secret\n", 2, "basic_auth_users.alice is no bcrypt hash"),
        ("basic_auth_users:\n  alice: [a]\n", 2, "basic_auth_users.alice expects a text"),
        (
            f"basic_auth_users:\n  alice: {HASH.replace('$04$', '$31$')}\n",
            2,
            "has the cost 31; expects 4 to 14",
        ),
        ("basic_auth_users: *users\n", 1, "aliases and anchors are refused"),
        ("rate_limit:\n  burst: 1\n", 1, "unknown key 'rate_limit'"),
    ],
)
def test_what_is_wrong_is_named_with_file_line_and_key(file, text, line, said):
    file.write_text(text)
    with pytest.raises(ConfigError) as raised:
        read(file)
    assert str(raised.value).startswith(f"{file}:{line}: ")
    assert said in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_missing_bcrypt_is_named_with_what_to_install(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "bcrypt", None)
    file.write_text(f"basic_auth_users:\n  alice: {HASH}\n")
    with pytest.raises(ConfigError, match=r"basic_auth_users needs .*capture-canary\[web\]"):
        read(file)


def test_an_encrypted_key_asks_nobody_for_a_password(file):
    (file.parent / "server.key").write_text(
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n"
    )
    file.write_text(TLS)
    with pytest.raises(ConfigError, match="cert_file and key_file cannot be used"):
        read(file)


@given(st.binary(max_size=400))
def test_whatever_the_file_holds_is_read_or_refused(tmp_path_factory, data):
    file = tmp_path_factory.mktemp("web") / "web.yml"
    file.write_bytes(data)
    try:
        read(file)
    except ConfigError as error:
        assert str(file) in str(error)  # noqa: PT017 - reading it is right as well


def test_a_file_that_turns_bad_changes_nothing_until_it_is_good_again(file, monkeypatch):
    monkeypatch.setattr(webconfig, "_LOOK_SECONDS", 0.0)
    file.write_text(f"basic_auth_users:\n  alice: {HASH}\n")
    followed = Followed(file)
    file.write_text("basic_auth_users:\n  alice: nonsense\n")
    assert list(followed.now().users) == ["alice"]
    file.unlink()
    assert list(followed.now().users) == ["alice"]
    file.write_text(f"basic_auth_users:\n  bob: {HASH}\n")
    assert list(followed.now().users) == ["bob"]


def test_a_new_certificate_needs_no_restart(file, authority, daemon: Daemon, monkeypatch):
    monkeypatch.setattr(webconfig, "_LOOK_SECONDS", 0.0)
    file.write_text(TLS)
    followed = Followed(file)
    with serving(daemon, tls=lambda: followed.now().tls) as running:
        before = connected_tls(running, authority)
        issued = authority.issue_cert("127.0.0.1")
        (file.parent / "server.pem").write_bytes(
            b"".join(b.bytes() for b in issued.cert_chain_pems)
        )
        (file.parent / "server.key").write_bytes(issued.private_key_pem.bytes())
        after = connected_tls(running, authority)
        assert before != after


def test_a_client_needs_the_certificate_that_the_file_asks_for(file, authority, daemon: Daemon):
    file.write_text(
        f"{TLS}  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.pem\n"
    )
    followed = Followed(file)
    with serving(daemon, tls=lambda: followed.now().tls) as running:
        assert connected_tls(running, authority, own=authority.issue_cert("client"))
        for own in (None, trustme.CA().issue_cert("client")):
            with pytest.raises(OSError):  # noqa: PT011 - which one depends on the version of TLS
                connected_tls(running, authority, own=own)


def test_old_tls_is_refused_by_default(file, authority, daemon: Daemon):
    file.write_text(TLS)
    followed = Followed(file)
    with serving(daemon, tls=lambda: followed.now().tls) as running:
        with pytest.warns(DeprecationWarning, match="TLSv1_1"), pytest.raises(ssl.SSLError):
            connected_tls(running, authority, most=ssl.TLSVersion.TLSv1_1)
        assert connected_tls(running, authority, most=ssl.TLSVersion.TLSv1_2)


def test_basic_auth_of_the_file(file, daemon: Daemon):
    file.write_text(f"basic_auth_users:\n  alice: {HASH}\n")
    followed = Followed(file)
    with serving(daemon, users=lambda: followed.now().users) as running:
        assert get(running, "/metrics").status == 401
        assert get(running, "/metrics", Authorization="Basic YWxpY2U6c2VjcmV0").status == 200


def test_a_wrong_file_ends_the_start_and_is_named(tmp_path):
    file = tmp_path / "web.yml"
    file.write_text("tls_server_config:\n  cert_file: x\n")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "capture_canary.cli", "run", "--listen", "127.0.0.1:0"),
            *("--state-dir", str(tmp_path), "--set", f"web.config_file={file}"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{file}:2: tls_server_config needs key_file\n"
