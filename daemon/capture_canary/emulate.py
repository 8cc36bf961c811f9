"""The emulated CANN as processes meet it: its settings, its files as a CANN of the version lays them, its environment.

What is a valid setting is told twice, here and in emulator/runtime/settings.c, since either may be met first; a test
holds the two together.
"""

import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from capture_canary.native import emulated_cann_dir
from capture_canary.scratch import scratch

Soc = Literal["a2", "a3", "950"]

_NUMBER = r"[0-9]{1,5}"
_VERSION = re.compile(
    rf"({_NUMBER})\.({_NUMBER})(?:\.({_NUMBER}))?"
    rf"((?:[.-]?(?:alpha|beta|rc)(?:\.?{_NUMBER})?){{0,3}})",
    re.IGNORECASE | re.ASCII,
)
_SIZE = re.compile(r"([0-9]{1,18})(B|KiB|MiB|GiB|TiB|)", re.ASCII)
_UNITS = {"": 0, "B": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}
_MAX_TEXT = 1023
_MAX_VERSION = 31
_FIRST_MAJOR = 8
_MARK = "emulated.info"
"""In the folder of every emulated CANN: what it is one of."""
PR_2405 = "9.1.0-pr2405"
"""A state of hcomm between the betas of 9.1.0 and the release, with half of the fix."""


class EmulationError(ValueError):
    """A setting of the emulation is not one; the message names key and value."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What is emulated."""

    cann: str
    hcomm: str
    soc: Soc
    npus: int
    """Chips of the node."""
    hbm: int
    """Bytes a chip."""
    peers: int | None
    """Peers that a collective links; None: as HCCL's algorithm does."""
    scratch: int | None
    """1 where a collective has scratch memory; None: as HCCL's algorithm has it."""
    roce: int
    """1 where the links are RoCE."""

    @property
    def made_of(self) -> str:
        """What the files of an emulated CANN depend on; the rest its libraries read from the environment."""
        return f"cann={self.cann},hcomm={self.hcomm},soc={self.soc}"

    def text(self) -> str:
        """Return the settings as CAPTURE_CANARY_EMULATE takes them."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return ",".join(f"{name}={value}" for name, value in values.items() if value is not None)


def _version(text: str) -> str | None:
    match = _VERSION.fullmatch(text)
    good = match is not None and int(match.group(1)) >= _FIRST_MAJOR and len(text) <= _MAX_VERSION
    return text if good else None


def _hcomm(text: str) -> str | None:
    return text if text == PR_2405 else _version(text)


def _soc(text: str) -> str | None:
    return text if text in ("a2", "a3", "950") else None


def _size(text: str) -> int | None:
    match = _SIZE.fullmatch(text)
    size = int(match.group(1)) << _UNITS[match.group(2)] if match else 0
    return size if 1 << 20 <= size <= 1 << 40 else None


def _count(low: int, high: int) -> Callable[[str], int | None]:
    def parse_count(text: str) -> int | None:
        good = re.fullmatch(_NUMBER, text, re.ASCII) and low <= int(text) <= high
        return int(text) if good else None

    return parse_count


_KEYS: dict[str, tuple[Callable[[str], str | int | None], str]] = {
    "cann": (_version, "a version from 8.0 on, e.g. 8.5.0 or 9.1.0-beta.1"),
    "hcomm": (_hcomm, f"a version from 8.0 on, or {PR_2405}"),
    "soc": (_soc, "a2, a3 or 950"),
    "npus": (_count(0, 64), "0 to 64"),
    "hbm": (_size, "a size from 1MiB to 1TiB, e.g. 64GiB"),
    "peers": (_count(0, 1023), "0 to 1023"),
    "scratch": (_count(0, 1), "0 or 1"),
    "roce": (_count(0, 1), "0 or 1"),
}


def parse(text: str) -> Settings:
    """Return the settings that `key=value,…` spells, with defaults for what is not named.

    Raises:
        EmulationError: an unknown key, a key given twice, or a value that is none.
    """
    if len(text.encode()) > _MAX_TEXT:
        raise EmulationError(f"longer than {_MAX_TEXT} characters")
    given: dict[str, Any] = {}
    for item in text.split(",") if text else []:
        key, separator, value = item.partition("=")
        if key not in _KEYS or not separator:
            raise EmulationError(f'"{item}" is not one of {", ".join(_KEYS)} followed by =')
        if key in given:
            raise EmulationError(f"{key} is given twice")
        read, wanted = _KEYS[key]
        given[key] = read(value)
        if given[key] is None:
            raise EmulationError(f"{key}={value} is not {wanted}")
    defaults: dict[str, Any] = {"cann": "8.5.0", "soc": "a3", "hbm": 64 << 30, "roce": 0}
    defaults |= {"peers": None, "scratch": None} | given
    defaults.setdefault("hcomm", defaults["cann"])
    defaults.setdefault("npus", 16 if defaults["soc"] == "a3" else 8)
    return Settings(**defaults)


def _major_minor(version: str) -> tuple[int, int]:
    match = _VERSION.match(version)
    if match is None:
        raise EmulationError(f"{version} is not a version")
    return int(match.group(1)), int(match.group(2))


def _build_id(built: Path) -> str:
    """Return what changes whenever the compiled parts or this file do: paths, sizes and times of change."""
    about = []
    for path in [Path(__file__), *sorted(built.rglob("*"))]:
        status = path.stat()
        about.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join(about).encode()).hexdigest()[:12]


def _libraries(built: Path, cann: str, hcomm: str) -> dict[str, Path]:
    """Return the libraries of a CANN by name: those of all versions, and those that are another in this one.

    hcomm from 9.0 on needs the destroy callback, which the runtime has since then: an older `cann` beside a newer
    `hcomm` gets it too, since the growth is to follow hcomm.
    """
    folders = ["lib64"]
    if max(_major_minor(cann), _major_minor(hcomm)) < (9, 0):
        folders.append("lib64-8.5")
    if _major_minor(cann) >= (9, 2):
        folders.append("lib64-9.2")
    found = {path.name: path for name in folders for path in sorted((built / name).glob("*.so"))}
    if "lib64-9.2" in folders:
        found.pop("libacl_rt_impl.so", None)  # part of libruntime there
    return found


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def lay_out(root: Path, final: Path, settings: Settings, built: Path) -> None:
    """Make a CANN's folder at `root`, in which `final` is where it will stand; its libraries are links into `built`."""
    arch = f"{os.uname().machine}-linux"
    (root / "lib64").mkdir(parents=True)
    for name, library in _libraries(built, settings.cann, settings.hcomm).items():
        (root / "lib64" / name).symlink_to(library)
    (root / "bin").mkdir()
    for command in sorted((built / "bin").iterdir()):
        (root / "bin" / command.name).symlink_to(command)
    (root / "opp").mkdir()
    (root / "python" / "site-packages").mkdir(parents=True)
    for module in sorted((built / "python").iterdir()):
        (root / "python" / "site-packages" / module.name).symlink_to(module)
    _write(root / _MARK, f"{settings.made_of}\n")
    folder = final.name
    for package in ("runtime", "compiler"):
        _write(root / package / "version.info", f"Version={settings.cann}\nversion_dir={folder}\n")
    packages = dict.fromkeys(("runtime", "compiler", "toolkit", "opp"), settings.cann)
    packages |= dict.fromkeys(("hcomm", "hccl"), settings.hcomm)
    for package, version in packages.items():
        text = f"Version={version}\nversion_dir={folder}\n"
        _write(root / "share" / "info" / package / "version.info", text)
    for package in ("toolkit", "ops"):
        text = (
            f"package_name=Ascend-cann-{package}\nversion={settings.cann}\ninnerversion=emulated\n"
            f"arch={arch.removesuffix('-linux')}\nos=linux\npath={final / arch}\n"
        )
        _write(root / arch / f"ascend_{package}_install.info", text)


def home(settings: Settings, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the emulated CANN's ASCEND_HOME_PATH, laid out if it is not there yet.

    Up to 8.3 a CANN lies in ascend-toolkit/latest, from 8.5 on in cann. A folder is made aside and renamed, so
    that processes that start together share one, and nobody sees half of it. Where ASCEND_HOME_PATH is such a CANN
    already, as in a stand-in image, it stays.
    """
    installed = environ.get("ASCEND_HOME_PATH")
    if installed and made_of(Path(installed)) == settings.made_of:
        return Path(installed)
    built = emulated_cann_dir()
    name = f"{settings.cann}-{settings.hcomm}-{settings.soc}-{_build_id(built)}"
    inside = "ascend-toolkit/latest" if is_old_layout(settings.cann) else "cann"
    said: OSError | None = None
    for cache in _caches(environ):
        place = cache / "emulated" / name
        try:
            if not place.is_dir():
                _make(place, inside, settings, built)
        except OSError as error:  # no home, or one that cannot be written
            said = error
            continue
        return place / inside
    raise said or FileNotFoundError(f"{scratch()}: no place for the emulated CANN")


def is_old_layout(cann: str) -> bool:
    """Whether a CANN of this version lies in ascend-toolkit, as up to 8.3."""
    return _major_minor(cann) <= (8, 3)


def made_of(home: Path) -> str | None:
    """Return what an emulated CANN is one of (`Settings.made_of`); None of a real one."""
    try:
        return (home / _MARK).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None


def _caches(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield where the emulated CANN may be kept: the user's cache, else a folder that nobody else can write."""
    home = environ.get("HOME")
    if cache := environ.get("XDG_CACHE_HOME") or (home and f"{home}/.cache"):
        yield Path(cache, "capture-canary")
    private = scratch() / f".capture-canary-{os.geteuid()}"
    private.mkdir(mode=0o700, exist_ok=True)
    status = private.lstat()
    # Libraries are loaded from there: in a folder that all may write, somebody else may have been first.
    if (
        stat.S_ISDIR(status.st_mode)
        and status.st_uid == os.geteuid()
        and not status.st_mode & 0o022
    ):
        yield private


def _make(place: Path, inside: str, settings: Settings, built: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        aside.chmod(0o755)
        lay_out(aside / inside, place / inside, settings, built)
        aside.rename(place)
    except OSError:
        shutil.rmtree(aside, ignore_errors=True)
        if not place.is_dir():  # else another process was first
            raise


def _before(first: Path, rest: str | None) -> str:
    return f"{first}:{rest}" if rest else str(first)


def environment(settings: Settings, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that make a process with the environment `environ` run on the emulated CANN."""
    root = home(settings, environ)
    return {
        "ASCEND_HOME_PATH": str(root),
        "ASCEND_TOOLKIT_HOME": str(root),
        "ASCEND_OPP_PATH": str(root / "opp"),
        "LD_LIBRARY_PATH": _before(root / "lib64", environ.get("LD_LIBRARY_PATH")),
        "PATH": _before(root / "bin", environ.get("PATH")),
        "PYTHONPATH": _before(root / "python" / "site-packages", environ.get("PYTHONPATH")),
        "CAPTURE_CANARY_EMULATE": settings.text(),
    }
