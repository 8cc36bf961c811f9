"""Short texts: versions, SoCs, durations, sizes, settings of the emulation, Authorization headers."""

from capture_canary import emulate
from capture_canary.config.units import Duration, Size
from capture_canary.export.auth import credentials
from capture_canary.stack import exposure, versions
from tests.fuzz.target import Target

SPELT = (
    *("8.3.RC2", "8.2.RC1.alpha003", "8.5.0.alpha002", "9.1.0-beta.1", "9.1.0beta1", "9.1.0"),
    *("9.1.0-pr2405", "V100R001C23SPC002B210", "8.5.0\0", " 9.2.0 ", "٣.1.0"),
)
SOCS = ("Ascend910_9391", "Ascend910B4", "950PR", "Ascend310P3", "Ascend910ProA", "atlas 900 a3")


def version(data: bytes) -> None:
    soc, _, text = data.decode(errors="replace").partition("\n")
    found = versions.parse(text)
    assert found == versions.parse(text.swapcase())
    assert versions.parse(found and f"{found.major}.{found.minor}.{found.patch}") or not found
    assert versions.at_least(text, exposure.FIXED) == (found and found >= exposure.FIXED)
    verdict = exposure.exposure(soc=soc, hcomm=text, mode=None)
    known = exposure.family(soc)
    # What is not known is neither exposed nor safe.
    assert verdict.exposed is None or known
    assert not verdict.exposed or found
    if found is None:
        assert verdict.exposed is None or known in {"a2", "310p", "910a"}


def unit(data: bytes) -> None:
    text = data.decode(errors="replace")
    for kind in (Duration, Size):
        try:
            value = kind.parse(text)
        except ValueError:
            continue
        assert value >= 0
        assert kind.parse(str(value)) == value


def emulation(data: bytes) -> None:
    settings = emulate.parse(data.decode(errors="replace"))
    assert emulate.parse(settings.text()) == settings


def header(data: bytes) -> None:
    found = credentials(data.decode("latin-1"))
    assert found is None or ":" not in found[0]


TARGETS = (
    Target(
        "version",
        "versions of CANN, names of SoCs",
        version,
        lambda: [f"{soc}\n{text}".encode() for text in SPELT for soc in SOCS],
        tokens=(b"alpha", b"beta", b"rc", b"RC", b"-pr", b".", b"\n9.1.0", b"910_93", b"910b", b"950", b"310p"),
        longest=128,
    ),
    Target(
        "unit",
        "durations and sizes",
        unit,
        lambda: [b"6h", b"1h30m", b"2GiB", b"999999999999999w", b"0s", b"64MiB", b"0B"],
        tokens=(b"ms", b"w", b"d", b"TiB", b"kB", b"999999999999999"),
        longest=96,
    ),
    Target(
        "emulation",
        "settings of the emulated CANN",
        emulation,
        lambda: [b"", b"cann=8.5.0,soc=a3,npus=16,hbm=64GiB", b"hcomm=9.1.0-pr2405,peers=3,scratch=1,roce=1"],
        raises=(emulate.EmulationError,),
        tokens=(b"cann=", b"hcomm=", b"soc=", b"npus=", b"hbm=", b"peers=", b"scratch=", b"roce=", b","),
        longest=256,
    ),
    Target(
        "authorization",
        "Authorization headers",
        header,
        lambda: [b"Basic YTpi", b"basic  OmI=", b"Bearer x", b"Basic /w==", b"Basic YTpi\xa0"],
        tokens=(b"Basic ", b"==", b"Og"),
        longest=256,
    ),
)  # fmt: skip
