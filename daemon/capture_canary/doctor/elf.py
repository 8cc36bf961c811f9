"""What a shared library exports, imports and how it binds, without a tool that a node may not have."""

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path

import msgspec

_DYNAMIC, _DYNSYM = 6, 11  # sh_type: SHT_DYNAMIC, SHT_DYNSYM
_SYMBOLIC, _FLAGS = 16, 30  # d_tag
_DF_SYMBOLIC = 2
_CALLABLE = {0, 2, 10}  # STT_NOTYPE, STT_FUNC, STT_GNU_IFUNC
MAX_SYMBOLS = 1 << 20


class Library(msgspec.Struct, frozen=True, kw_only=True):
    """The dynamic side of one library."""

    exports: frozenset[str]
    imports: frozenset[str]
    symbolic: bool
    """Its own calls to itself bind inside (-Bsymbolic): a preloaded library does not see them."""


def read(path: Path) -> Library:
    """Return a 64-bit little-endian library's dynamic symbols.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no such library.
    """
    with path.open("rb") as file:
        if not file.read(6).startswith(b"\x7fELF\x02\x01"):
            raise ValueError(f"{path} is no 64-bit library")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return _read(data)
            except (struct.error, IndexError, OverflowError) as error:
                raise ValueError(f"{path} is damaged: {error}") from error


def _read(data: mmap.mmap) -> Library:
    (start,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQII", data, start + n * size) for n in range(count)]
    exports: set[str] = set()
    imports: set[str] = set()
    symbolic = False
    for _, kind, _, _, offset, length, link, _ in sections:
        if kind == _DYNSYM:
            for name, defined in _symbols(data, offset, length, sections[link]):
                (exports if defined else imports).add(name)
        elif kind == _DYNAMIC:
            symbolic = symbolic or _symbolic(data, offset, length)
    return Library(exports=frozenset(exports), imports=frozenset(imports), symbolic=symbolic)


def _symbols(
    data: mmap.mmap, offset: int, length: int, strings: tuple[int, ...]
) -> Iterator[tuple[str, bool]]:
    begin, end = strings[4], strings[4] + strings[5]
    for at in range(offset, offset + min(length, MAX_SYMBOLS * 24), 24):
        name, info, _, where = struct.unpack_from("<IBBH", data, at)
        if name and info & 15 in _CALLABLE:
            stop = data.find(b"\0", begin + name, end)
            yield data[begin + name : stop].decode("ascii", "replace"), where != 0


def _symbolic(data: mmap.mmap, offset: int, length: int) -> bool:
    for at in range(offset, offset + length, 16):
        tag, value = struct.unpack_from("<QQ", data, at)
        if tag == _SYMBOLIC or (tag == _FLAGS and value & _DF_SYMBOLIC):
            return True
        if tag == 0:
            break
    return False
