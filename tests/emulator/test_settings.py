import ctypes

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from capture_canary import emulate
from capture_canary.native import emulated_cann_dir
from tests.emulator.child import emulated, start

KEYS = ("cann", "hcomm", "soc", "npus", "hbm", "peers", "scratch", "roce")
SOCS = ("a2", "a3", "950")


class CSettings(ctypes.Structure):
    """emuSettings of emulator/include/emu.h."""

    _fields_ = (
        ("cann", ctypes.c_char * 32),
        ("hcomm", ctypes.c_char * 32),
        ("growth", ctypes.c_int),
        ("soc", ctypes.c_int),
        ("npus", ctypes.c_int),
        ("hbm", ctypes.c_uint64),
        ("peers", ctypes.c_int),
        ("scratch", ctypes.c_int),
        ("roce", ctypes.c_int),
    )


RUNTIME = ctypes.CDLL(str(emulated_cann_dir() / "lib64" / "libruntime.so"))


def _parse_in_c(text: str):
    settings, error = CSettings(), ctypes.create_string_buffer(2048)
    code = RUNTIME.emuSettingsParse(
        text.encode(), ctypes.byref(settings), error, ctypes.c_size_t(2048)
    )
    return settings, None if code == 0 else error.value.decode(errors="replace")


@pytest.mark.parametrize(
    ("hcomm", "growth"),
    [
        ("8.5.0", 0),
        ("8.3.RC2", 0),
        ("9.0.2", 0),
        ("9.1.0-beta.1", 0),
        ("9.1.0.beta.3", 0),
        ("9.1.0-rc.1", 0),
        ("9.1.0-pr2405", 1),
        ("9.1.0", 2),
        ("9.1", 2),
        ("9.1.1-beta.1", 2),
        ("9.2.0-beta.1", 2),
        ("10.0.0", 2),
    ],
)
def test_growth_follows_hcomm(hcomm, growth):
    settings, error = _parse_in_c(f"hcomm={hcomm}")
    assert error is None
    assert settings.growth == growth
    assert emulate.parse(f"hcomm={hcomm}").hcomm == hcomm


def test_defaults():
    for text, npus in (("", 16), ("soc=a3", 16), ("soc=a2", 8), ("soc=950", 8)):
        settings = emulate.parse(text)
        assert (settings.cann, settings.hcomm, settings.npus, settings.hbm) == (
            "8.5.0",
            "8.5.0",
            npus,
            64 << 30,
        )
        assert (settings.peers, settings.scratch, settings.roce) == (None, None, 0)
    assert emulate.parse("cann=9.1.0").hcomm == "9.1.0"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("cann", '"cann"'),
        ("cann=", "cann="),
        ("cann=7.0.0", "cann=7.0.0"),
        ("cann=9", "cann=9"),
        ("cann=9.1.0-pr2405", "cann=9.1.0-pr2405"),
        ("hcomm=latest", "hcomm=latest"),
        ("hcomm=9.1.0-pr2406", "hcomm=9.1.0-pr2406"),
        ("soc=A3", "soc=A3"),
        ("npus=65", "npus=65"),
        ("npus=+1", "npus=+1"),
        ("npus=1,npus=2", "npus is given twice"),
        ("hbm=64GB", "hbm=64GB"),
        ("hbm=1KiB", "hbm=1KiB"),
        ("hbm=2TiB", "hbm=2TiB"),
        ("hbm=99999999999999999999", "hbm=9999"),
        ("peers=-1", "peers=-1"),
        ("scratch=2", "scratch=2"),
        ("roce=yes", "roce=yes"),
        ("npus=1,", '""'),
        ("chips=4", '"chips'),
        ("npus =4", '"npus '),
        ("x" * 2000, "longer than 1023"),
    ],
)
def test_a_bad_setting_is_named_in_both_languages(text, named):
    with pytest.raises(emulate.EmulationError) as raised:
        emulate.parse(text)
    _, error = _parse_in_c(text)
    assert named in str(raised.value)
    assert named in (error or "")


versions = st.from_regex(
    r"[0-9]{1,2}\.[0-9](\.[0-9]{1,6})?([.-]?(alpha|Beta|RC|pr)[.-]?[0-9]{0,3}){0,4}", fullmatch=True
)
values = st.one_of(
    versions,
    st.sampled_from(
        (
            *SOCS,
            "9.1.0-pr2405",
            "64GiB",
            "512MiB",
            "1TiB",
            "1048576",
            "1048575B",
            "0",
            "1",
            "16",
            "64",
        )
    ),
    st.integers(-2, 2000).map(str),
    st.text(max_size=8),
)
items = st.builds("{}={}".format, st.sampled_from((*KEYS, "", "x")), values)


@given(st.lists(items, max_size=5).map(",".join))
@example("cann=8.5.0rc1rc2rc3rc4")
@example("cann=9.0.00001")
@example("hbm=000000000000000001TiB")
@example("cann=8.5.0.beta.1.")
def test_python_and_c_take_the_same_settings(text):
    if "\0" in text:
        return
    found, error = _parse_in_c(text)
    try:
        settings = emulate.parse(text)
    except emulate.EmulationError:
        assert error is not None
        return
    assert error is None
    assert found.cann.decode() == settings.cann
    assert found.hcomm.decode() == settings.hcomm
    assert SOCS[found.soc] == settings.soc
    assert (found.npus, found.hbm, found.roce) == (settings.npus, settings.hbm, settings.roce)
    assert found.peers == (-1 if settings.peers is None else settings.peers)
    assert found.scratch == (-1 if settings.scratch is None else settings.scratch)
    assert emulate.parse(settings.text()) == settings


def test_a_bad_setting_ends_the_process_that_has_it(tmp_path):
    environ = emulated(tmp_path) | {"CAPTURE_CANARY_EMULATE": "cann=8.5.0,soc=a9"}
    child = start("from tests.emulator.child import Acl; Acl()", environ)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 2
    assert "CAPTURE_CANARY_EMULATE: soc=a9 is not a2, a3 or 950" in errors
