"""Nothing that names a host, an address, a serial number or a secret stays; what support needs does."""

import ipaddress
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capture_canary.bundle.redact import Redactor

KEPT = [
    "| 0     0                   | 0000:9D:00.0  | 37          0    / 0          58211 / 65536        |",
    "npu-smi 25.3.rc1  Version: 25.3.rc1",
    "hcomm 9.1.0, torch_npu 2.10.0.post4, driver 25.5.1, V100R001C23SPC002B210",
    "[INFO] HCCL(1234,python):2026-11-29-22:15:38.123.456 [hccl_communicator.cc:4315]",
    "2026-11-29T22:15:38Z capture 17 took 0.0123 s",
    '"mode_source": "servers: environment", "seconds": 1.25',
    "listening on 127.0.0.1:9877 and 0.0.0.0",
    "/usr/local/Ascend/cann-9.1.0/share/info/hcomm/version.info",
]


@pytest.mark.parametrize("text", KEPT)
def test_what_support_needs_stays(text):
    assert Redactor(["gpu-node-17"]).text(text) == text


@pytest.mark.parametrize(
    ("text", "wanted", "kind"),
    [
        ("connect to 10.1.2.3:60000 failed", "connect to <address-1>:60000 failed", "address"),
        ("peer [fe80::1a2b:3c4d] left", "peer [<address-1>] left", "address"),
        ("2001:db8:0:0:0:0:0:1", "<address-1>", "address"),
        ("link 48:57:02:ab:cd:ef up", "link <mac-1> up", "mac"),
        ("Serial Number : 2102AB1234C0", "Serial Number : <serial-1>", "serial"),
        ("vdie_id=45A8E180 20504E03", "vdie_id=<serial-1>", "serial"),
        ('"vdie_id": "45A8E180 20504E03",', '"vdie_id": "<serial-1>",', "serial"),
        ("HF_TOKEN=hf_abcdefghijk", "HF_TOKEN=<secret-1>", "secret"),
        ('"password": "p4ss,word"', '"password": "<secret-1>,word"', "secret"),
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer <secret-1>", "secret"),
        ("https://me:pass1@mirror/x", "https://me:<secret-1>@mirror/x", "secret"),
        ("by someone@example.org", "by <mail-1>", "mail"),
        ("on GPU-Node-17.cluster", "on <host-1>.cluster", "host"),
    ],
)
def test_what_names_somebody_goes(text, wanted, kind):
    redactor = Redactor(["gpu-node-17"])
    assert redactor.text(text) == wanted
    assert redactor.report() == {kind: {"occurrences": 1, "different": 1}}


def test_the_same_value_is_the_same_placeholder():
    redactor = Redactor([])
    assert redactor.text("10.0.0.1 10.0.0.2 10.0.0.1") == "<address-1> <address-2> <address-1>"
    assert redactor.text("again 10.0.0.2") == "again <address-2>"
    assert redactor.report()["address"] == {"occurrences": 4, "different": 2}


AROUND = st.sampled_from(["", " ", "\n", "=", "(", '"', "[", "/", ", "])


@given(
    address=st.ip_addresses().filter(lambda a: str(a) not in {"0.0.0.0", "::", "::1", "127.0.0.1"}),  # noqa: S104
    before=AROUND,
    after=AROUND,
)
def test_every_address_goes(address, before, after):
    text = Redactor([]).text(f"x{before or ' '}{address}{after}")
    assert str(address) not in text
    if isinstance(address, ipaddress.IPv4Address):
        assert text == f"x{before or ' '}<address-1>{after}"


@given(
    host=st.from_regex(r"[a-z][a-z0-9-]{2,20}[a-z0-9]", fullmatch=True).filter(
        lambda h: h not in {"address", "host", "secret", "serial"}
    ),
    text=st.text(max_size=200),
)
def test_every_known_host_goes(host, text):
    found = Redactor([host]).text(f"{text} {host}: {host.upper()}/{host}.local")
    assert f" {host}" not in found.removeprefix(text).replace("<host-1>", "")


@given(text=st.text(max_size=2000))
def test_any_text_is_redacted_once_and_for_all(text):
    redactor = Redactor(["node-1"])
    once = redactor.text(text)
    assert redactor.text(once) == once


def test_long_lines_take_no_long_time():
    for piece in (
        "a" * 200_000,
        "1." * 100_000,
        "::" * 100_000,
        "token" * 40_000,
        "a@" * 100_000,
        "http://" * 30_000,
    ):
        assert Redactor(["node"]).text(piece)


def test_many_different_values_cost_no_more_each():
    calls = [_calls(count) for count in (100, 800)]
    assert calls[1] < 12 * calls[0]


def _calls(count: int) -> int:
    """Calls that redacting so many different addresses takes."""
    calls = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    redactor = Redactor([])
    text = " ".join(f"10.0.{n // 250}.{n % 250}" for n in range(count))
    sys.setprofile(note)
    try:
        redactor.text(text)
    finally:
        sys.setprofile(None)
    assert redactor.report()["address"] == {"occurrences": count, "different": count}
    return calls
