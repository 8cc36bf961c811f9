"""Reads matrix.toml: which images there are, on what each is built, and why some can't be."""

import functools
import re
import sys
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any, Literal

import msgspec

from capture_canary.images.cells import FLAVOURS, Cell, Flavour, MatrixError, Status
from capture_canary.stack import versions

_VLLM_BASE = "quay.io/ascend/vllm-ascend:v{vllm-ascend}{soc}{os}"
_PLACE = re.compile(r"\{([a-z-]+)\}")
_SAFE = re.compile(r"[a-z0-9][a-z0-9._/:{}-]{0,200}", re.ASCII | re.IGNORECASE)


class _Model(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """A table of matrix.toml."""


class Soc(_Model, frozen=True):
    """A SoC, by the name that base images have for it."""

    family: str
    """As Capture Canary names it: a2, a3, 310p, 950."""
    suffix: str
    """Of vllm-ascend's tags."""
    since: str | None = None
    """The first CANN that is published for it."""
    not_analysed: str | None = None


class System(_Model, frozen=True):
    """An operating system of base images."""

    suffix: str
    """Of vllm-ascend's tags."""


class Vllm(_Model, frozen=True):
    """The vllm-ascend image on a line of CANN, and the SoCs it is published for."""

    vllm_ascend: str
    vllm: str
    torch_npu: str
    socs: tuple[str, ...]


class Line(_Model, frozen=True):
    """A version of CANN."""

    cann: str
    base: str | None = None
    python: str | None = None
    vllm: Vllm | None = None
    preview: str | None = None
    """Why it is not to be relied on, other than that its version says so."""
    unavailable: str | None = None


class Emulated(_Model, frozen=True):
    """The stand-ins."""

    system: str
    python: str
    builder: str
    base: str
    lines: tuple[str, ...]
    socs: tuple[str, ...]
    vllm_base: str
    vllm: Vllm
    vllm_line: str


class _File(_Model, frozen=True):
    schema: Literal[1]
    builder: str
    socs: dict[str, Soc]
    systems: dict[str, System]
    lines: tuple[Line, ...]
    emulated: Emulated


def load(text: str | None = None) -> tuple[Cell, ...]:
    """Return the cells: those of the file that comes with the package, or of another's text.

    Raises:
        MatrixError: the text is no matrix, the message says where.
    """
    return _packaged() if text is None else _read(text)


@functools.lru_cache(maxsize=1)
def _packaged() -> tuple[Cell, ...]:
    return _read(files("capture_canary.images").joinpath("matrix.toml").read_text("utf-8"))


def _read(text: str) -> tuple[Cell, ...]:
    file = _decode(text)
    _check(file)
    return (*_real(file), *_emulated(file))


def _decode(text: str) -> _File:
    try:
        return msgspec.convert(_toml(text), _File)
    except msgspec.ValidationError as error:
        raise MatrixError(f"matrix.toml: {error}") from None


def _toml(text: str) -> Any:
    # Pyright reads this for 3.10, mypy for the Python it runs on: both branches are real.
    if sys.version_info >= (3, 11):
        import tomllib as toml  # noqa: PLC0415  # the one of the standard library
    else:
        try:
            import tomli as toml  # noqa: PLC0415  # an extra
        except ImportError:
            raise MatrixError(
                "Python 3.10 needs tomli: pip install 'capture-canary[images]'"
            ) from None
    try:
        return toml.loads(text)
    except toml.TOMLDecodeError as error:
        raise MatrixError(f"matrix.toml: {error}") from None
    except RecursionError:
        raise MatrixError("matrix.toml: it is nested too deep") from None


def _check(file: _File) -> None:
    """Find what types do not."""
    seen: set[str] = set()
    for line in file.lines:
        where = f"matrix.toml: CANN {line.cann}"
        if versions.parse(line.cann) is None:
            raise MatrixError(f"{where}: is not a version")
        if line.cann in seen:
            raise MatrixError(f"{where}: is there twice")
        seen.add(line.cann)
        if (line.base is None) == (line.unavailable is None):
            raise MatrixError(f"{where}: needs either `base` or `unavailable`")
        if line.base is not None:
            if line.python is None:
                raise MatrixError(f"{where}: has a base and no `python`")
            _check_template(line.base, {"soc", "os"}, where)
        _check_socs(line.vllm.socs if line.vllm else (), file, where)
    emulated = file.emulated
    _check_socs((*emulated.socs, *emulated.vllm.socs), file, "matrix.toml: emulated")
    _check_template(emulated.base, {"cann", "soc", "os"}, "matrix.toml: emulated.base")
    places = {"vllm-ascend", "soc", "os"}
    _check_template(emulated.vllm_base, places, "matrix.toml: emulated.vllm-base")
    for cann in (*emulated.lines, emulated.vllm_line):
        if cann not in seen:
            raise MatrixError(f"matrix.toml: emulated: there is no line {cann}")


def _check_template(template: str, wanted: set[str], where: str) -> None:
    if set(_PLACE.findall(template)) != wanted or not _SAFE.fullmatch(template):
        names = ", ".join(f"{{{name}}}" for name in sorted(wanted))
        raise MatrixError(f"{where}: {template!r} is no image name with {names} in it")


def _check_socs(socs: Sequence[str], file: _File, where: str) -> None:
    for soc in socs:
        if soc not in file.socs:
            raise MatrixError(f"{where}: there is no SoC {soc}")


def _fill(template: str, **values: str) -> str:
    return _PLACE.sub(lambda match: values[match[1].replace("-", "_")], template)


def _real(file: _File) -> Iterator[Cell]:
    for line in file.lines:
        for name, soc in file.socs.items():
            for system in file.systems:
                for flavour in FLAVOURS:
                    yield _real_cell(file, line, (name, soc), system, flavour)


def _real_cell(
    file: _File, line: Line, soc: tuple[str, Soc], system: str, flavour: Flavour
) -> Cell:
    name, about = soc
    vllm = line.vllm if flavour == "vllm" else None
    missing = _missing(line, name, about, flavour)
    if missing:
        base = None
    elif vllm:
        values = {"vllm_ascend": vllm.vllm_ascend, "soc": about.suffix}
        base = _fill(_VLLM_BASE, **values, os=file.systems[system].suffix)
    else:
        base = _fill(line.base or "", soc=name, os=system)
    status, reason = _standing(line, about)
    return Cell(
        kind="real",
        cann=line.cann,
        soc=name,
        family=about.family,
        system=system,
        flavour=flavour,
        base=base,
        builder=file.builder,
        python=line.python if base else None,
        torch_npu=vllm.torch_npu if vllm and base else None,
        vllm=vllm.vllm if vllm and base else None,
        vllm_ascend=vllm.vllm_ascend if vllm and base else None,
        status="unavailable" if missing else status,
        reason=missing or reason,
    )


def _missing(line: Line, name: str, soc: Soc, flavour: Flavour) -> str | None:
    """Return why there is nothing to build on; None where there is."""
    if line.unavailable:
        return line.unavailable
    since = versions.parse(soc.since) if soc.since else None
    if since and not versions.at_least(line.cann, since):
        return f"CANN is published for {name} from {soc.since} on"
    if flavour == "core":
        return None
    if line.vllm is None:
        return "no vllm-ascend image is on this CANN"
    if name not in line.vllm.socs:
        return f"no vllm-ascend image for {name} is known to be on this CANN"
    return None


def _standing(line: Line, soc: Soc) -> tuple[Status, str | None]:
    if soc.not_analysed:
        return "not analysed", soc.not_analysed
    if line.preview:
        return "preview", line.preview
    version = versions.parse(line.cann)
    early = version is not None and len(version.stages) > 1 and version.major >= _PLAIN_NUMBERS
    return ("preview", "a pre-release of CANN") if early else ("supported", None)


_PLAIN_NUMBERS = 9
"""Up to 8.3 the vendor's RCs were its releases."""


def _emulated(file: _File) -> Iterator[Cell]:
    emulated = file.emulated
    for cann in emulated.lines:
        for soc in emulated.socs:
            yield _stand_in(file, cann, soc, None)
    for soc in emulated.vllm.socs:
        yield _stand_in(file, emulated.vllm_line, soc, emulated.vllm)


def _stand_in(file: _File, cann: str, soc: str, vllm: Vllm | None) -> Cell:
    emulated = file.emulated
    values = {"cann": cann.lower(), "soc": soc, "os": emulated.system}
    if vllm:
        values["vllm_ascend"] = vllm.vllm_ascend
    return Cell(
        kind="emulated",
        cann=cann,
        soc=soc,
        family=file.socs[soc].family,
        system=emulated.system,
        flavour="vllm" if vllm else "core",
        base=_fill(emulated.vllm_base if vllm else emulated.base, **values),
        builder=emulated.builder,
        python=emulated.python,
        torch_npu=vllm.torch_npu if vllm else None,
        vllm=vllm.vllm if vllm else None,
        vllm_ascend=vllm.vllm_ascend if vllm else None,
        status="emulated",
        reason="its CANN is emulated: what it shows says nothing of a node",
    )
