"""Files of other tools and other hands: profiles, settings, the web config, the matrix of images, libraries."""

import os
from pathlib import Path

from capture_canary.config.document import File
from capture_canary.config.keys import keys, value_of
from capture_canary.config.load import combine
from capture_canary.config.problems import ConfigError
from capture_canary.doctor import elf
from capture_canary.export import webconfig
from capture_canary.images import matrix
from capture_canary.images.cells import MatrixError
from capture_canary.profiles import statistic
from capture_canary.profiles.statistic import ProfileError
from capture_canary.stack import cann
from tests.fuzz.target import Target, put, scratch
from tests.images.test_matrix import GOOD
from tests.profiles.test_statistic import HEADING, ROWS

ROOT = Path(__file__).parents[3]
HASH = "$2y$10$" + "a" * 53


def profile(data: bytes) -> None:
    found = statistic.read(put(scratch("profile") / "api_statistic.csv", data))
    assert found.levels
    for one in found.levels:
        assert one.copies >= 0
        assert one.share is None or -1e-9 <= one.share <= 1 + 1e-9


def _said(error: ConfigError) -> None:
    """An error names its place, in lines of its own that steer no terminal."""
    for one in str(error).split("\n"):
        assert one.isprintable(), one
        assert len(one) < 1000


def settings(data: bytes) -> None:
    try:
        found = combine(File("f.yaml", data), {}, {}, privileged=True)
    except ConfigError as error:
        _said(error)
        return
    texts = {key.name: key.text(value_of(found.config, key.name)) for key in keys().values()}
    for path in (found.config.state_dir, found.config.trace_dir, found.config.lock_file):
        os.fsencode(path)  # what a system call takes
    named = {
        keys()[name].variable: text
        for name, text in texts.items()
        if found.sources[name].kind == "file" and not keys()[name].is_list
    }
    again = combine(None, named, {}, privileged=True)
    same = {name: value_of(again.config, name) for name in keys() if keys()[name].variable in named}
    assert same == {name: value_of(found.config, name) for name in same}


def web(data: bytes) -> None:
    try:
        found = webconfig.read(put(scratch("web") / "web.yaml", data))
    except ConfigError as error:
        _said(error)
        return
    assert all(webconfig._HASH.fullmatch(one.decode()) for one in found.users.values())  # noqa: SLF001  # the form itself


def images(data: bytes) -> None:
    for cell in matrix.load(data.decode(errors="replace")):
        assert (cell.base is None) == (cell.status == "unavailable")
        assert cell.tag("0.1.0")


def library(data: bytes) -> None:
    found = elf.read(put(scratch("elf") / "lib.so", data))
    assert all(name.isascii() or "\ufffd" in name for name in found.exports | found.imports)


def _libraries() -> list[bytes]:
    """The smallest of ours, and a begin of one."""
    from capture_canary.native import tracer_path  # noqa: PLC0415  # where the tests have built it

    return [tracer_path().read_bytes(), b"\x7fELF\x02\x01" + bytes(64)]


def installed(data: bytes) -> None:
    """A version file, as CANN's packages have them."""
    home = scratch("cann") / "cann"
    (home / "hcomm").mkdir(parents=True, exist_ok=True)
    put(home / "hcomm" / "version.info", data)
    found = cann.read_stack(home, driver=home / "none")
    value = found["hcomm"].value
    assert value is None or (value.isascii() and value.isprintable() and len(value) <= 64)
    cann.contradictions(found)


TARGETS = (
    Target(
        "profile", "profiles of msprof and torch-npu", profile, longest=4096,
        seeds=lambda: [(HEADING + ROWS).encode(), b"\xef\xbb\xbf" + HEADING.encode(), (HEADING + ROWS).replace("\n", "\r\n").encode()],
        raises=(ProfileError,), tokens=(b'"', b",", b"runtime,MemCopySync,", b"nan", b"1e14", b"-0", b"\r", b"acl,aclrtMemcpy,"),
    ),
    Target(
        "config", "the configuration file", settings, longest=2048,
        seeds=lambda: [(ROOT / "docs" / "config.example.yaml").read_bytes()[:2000], b"mode: probe\nunmanaged: true\nprobe:\n  interval: 6h\n  devices: [0, 1]\n", b'state_dir: "/x\\u0041"\nlogs: []\n'],
        tokens=(b": ", b"\n  ", b"- ", b"? ", b'"\\x00"', b'"\\ud800"', b"&a ", b"*a", b"!!", b"| \n", b"---\n", b"%YAML 1.2\n", *(f"{name.split('.')[-1]}: ".encode() for name in keys())),
    ),
    Target(
        "web-config", "the web config", web, longest=1024,
        seeds=lambda: [
            f"basic_auth_users:\n  alice: {HASH}\n".encode(), b"tls_server_config:\n  cert_file: a.pem\n  key_file: b.pem\n  min_version: TLS13\n",
            b"tls_server_config: {cert_file: x, key_file: y, client_ca_file: z, client_auth_type: RequireAndVerifyClientCert}\nhttp_server_config: {http2: true}\n",
        ],
        tokens=(b'"\\0"', b'"\\ud800"', b'"\\e[2J"', b"basic_auth_users:", b"tls_server_config:", b"cert_file: ", b"key_file: ", b"/dev/null", b"? ", HASH.encode()),
    ),
    Target(
        "matrix", "matrix.toml", images, lambda: [GOOD.encode()], raises=(MatrixError,), longest=2048,
        tokens=(b"[" * 1200, b"{a=" * 400, b"[[lines]]\n", b"cann = ", b"{soc}", b"{os}", b"{cann}", b"{vllm-ascend}", b"unavailable = ", b"since = ", b"= 1979-05-27\n"),
    ),
    Target("library", "shared libraries", library, _libraries, raises=(ValueError,), mutants=40, longest=1 << 16),
    Target(
        "version-file", "CANN's version files", installed, longest=1024,
        seeds=lambda: [b"Version=8.5.0\nversion_dir=8.5.0\n", b'version = "9.1.0-beta.1"\r\n', b"\xff\nVERSION=7\n"],
        tokens=(b"version=", b"Version = ", b'"', b"\r"),
    ),
)  # fmt: skip
