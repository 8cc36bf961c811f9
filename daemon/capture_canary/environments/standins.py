"""Stand-ins for libraries that an environment links and nobody here brings: CANN's operators, CUDA.

They are made for the packages that are *installed*: whatever those ask for is exported, under the versions they ask
for. An operator of libopapi succeeds and computes nothing; everything else says that it is not supported.
"""

import ctypes
import hashlib
import mmap
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from capture_canary.environments.elf import Library, ToolMissingError, read
from capture_canary.native import native_dir

CUDA_FOLDERS = ("torch/lib", "torchvision")
CANN_FOLDERS = ("torch_npu", "torch_npu/lib", "vllm_ascend", "vllm_ascend/lib")
"""Where the libraries that link CUDA and CANN are, in site-packages."""

# What every Linux has, as far as these packages go.
_SYSTEM = re.compile(
    r"(ld-linux\S*|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|gomp|util|z))\.so(\.\d+)*$"
)
_HOST = (
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "libgcc_s.so.1",
    "libstdc++.so.6",
)
_CUDA = re.compile(r"lib(cu|nv|nccl)")
_OPERATOR = re.compile(rb"aclnn[A-Z]\w*(?=\0)")
_CREATE_OPERATION = "_ZN3atb15CreateOperationI"
_MARK = "made-from"
# What may go into C source, a version script and a file's name; a package's library may hold anything.
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_LIBRARY = re.compile(r"[\w+-][\w.+-]*", re.ASCII)

COMPILERS = {"C": ("CC", "cc", "gcc", "clang"), "C++": ("CXX", "c++", "g++", "clang++")}
CUDA_ERROR_NO_DEVICE = 100
ACL_ERROR_RT_FEATURE_NOT_SUPPORT = 207000


@dataclass
class StandIn:
    """One library to be made."""

    soname: str
    functions: dict[str, str | None] = field(default_factory=dict)
    """What it exports, each under the version that is asked for."""
    returns: int = 0
    links: Path | None = None
    """A library whose functions it offers as well, to who looks names up by handle."""
    base: Path | None = None
    """Source in C++ that it starts with, which defines some of the functions and `createOperation`."""

    def body(self, name: str) -> str:
        """Return the definition of one function."""
        if self.base is None:
            return f"int {name}(void) {{ return {self.returns}; }}"
        if name.startswith(_CREATE_OPERATION):
            # Not of C linkage, and yet of this very name: the types of its parameters are not to be had.
            return (
                f'extern "C" int {name}(const void *, atb::Operation **made) '
                "{ return createOperation(made); }"
            )
        return ""  # atb.cpp defines it, or it stays missing as with an older libatb


def fresh(site: Path, emulated: Path, out: Path) -> bool:
    """Return whether what is in `out` was made for the packages in `site` and the emulated CANN as they are."""
    try:
        return (out / _MARK).read_text(encoding="utf-8") == _digest(site, emulated)
    except OSError:
        return False


def refresh(site: Path, emulated: Path, out: Path) -> None:
    """Make in `out` what must stand in for the packages in `site`, unless it is fresh.

    Raises:
        ToolMissingError: there is no C compiler or no readelf.
        subprocess.CalledProcessError: the compiler refused.
    """
    if not fresh(site, emulated, out):
        build(plan(site, emulated), out)
        (out / _MARK).write_text(_digest(site, emulated), encoding="utf-8")


def _digest(site: Path, emulated: Path) -> str:
    """Return what changes with the packages, the emulated CANN and how stand-ins are made."""
    packages = sorted(file.name for file in site.glob("*.dist-info"))
    digest = hashlib.sha256(repr(packages).encode())
    for file in [Path(__file__), _atb(), *sorted(emulated.glob("*.so"))]:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def plan(site: Path, emulated: Path) -> list[StandIn]:
    """Return what must stand in for the packages in `site` to load, given the emulated CANN's."""
    cuda = [file for folder in CUDA_FOLDERS for file in sorted((site / folder).glob("*.so"))]
    cann = [file for folder in CANN_FOLDERS for file in sorted((site / folder).glob("*.so"))]
    askers = [read(file) for file in cuda + cann]
    brought = sorted(emulated.glob("*.so"))
    present = {file.name for file in [*site.rglob("*.so*"), *brought]}
    needed = set().union(*(asker.needed for asker in askers))
    missing = {name for name in needed - present if not _SYSTEM.match(name)}
    made = {
        name: StandIn(name, returns=_refusal(name))
        for name in sorted(missing)
        if _LIBRARY.fullmatch(name)
    }
    offered = set().union(*(library.defined for library in [*askers, *map(read, brought)]))
    for asker in askers:
        _give_versioned(asker, made)
    for asker in askers:
        _give_orphans(asker, made, offered)
    if "libatb.so" in made:
        made["libatb.so"].base = _atb()
    operators = {name for file in cann for name in _operators(file)}
    if operators:
        # As in CANN: the arguments of operators are made by libnnopbase and looked up in libopapi.
        base = next((file for file in brought if file.name == "libnnopbase.so"), None)
        made["libopapi.so"] = StandIn("libopapi.so", dict.fromkeys(sorted(operators)), links=base)
    return list(made.values())


def _refusal(soname: str) -> int:
    return CUDA_ERROR_NO_DEVICE if _CUDA.match(soname) else ACL_ERROR_RT_FEATURE_NOT_SUPPORT


def _give_versioned(asker: Library, made: dict[str, StandIn]) -> None:
    """Put each function that is asked for under a version into the stand-in that has that version."""
    for name, version in asker.asked.items():
        home = made.get(asker.home.get(version or "", ""))
        if home is not None and _NAME.fullmatch(name) and _LIBRARY.fullmatch(version or ""):
            home.functions[name] = version


def _give_orphans(asker: Library, made: dict[str, StandIn], offered: set[str]) -> None:
    """Put each function that nobody offers into one of the stand-ins that the asker links."""
    linked = [made[name] for name in sorted(asker.needed) if name in made]
    if not linked:
        return
    # Preferably where a version script does not stand in the way; the loader looks in all of them.
    home = min(linked, key=lambda standin: any(standin.functions.values()))
    host = [ctypes.CDLL(name) for name in _HOST]
    for name, version in asker.asked.items():
        if version is not None or name in offered or not _NAME.fullmatch(name):
            continue
        if not name.startswith(("Py", "_Py")) and not any(hasattr(lib, name) for lib in host):
            home.functions[name] = None


def _operators(file: Path) -> set[str]:
    """Return the operators whose names stand in a library, to be looked up while it runs."""
    if file.stat().st_size == 0:
        return set()
    with (
        file.open("rb") as opened,
        mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        return {found.decode() for found in _OPERATOR.findall(content)}


def _atb() -> Path:
    """Return the source of libatb, whose functions are called through vtables of C++."""
    return native_dir() / "standins" / "atb.cpp"


def compiler(language: str = "C") -> str:
    """Return the machine's compiler of C or C++: $CC or $CXX, else the usual names.

    Raises:
        ToolMissingError: there is none.
    """
    variable, *names = COMPILERS[language]
    for name in (os.environ.get(variable), *names):
        if name and (found := shutil.which(name)):
            return found
    raise ToolMissingError(
        f"no {language} compiler ({', '.join(names)} or ${variable}): install one, e.g. apt install {names[1]}"
    )


def build(standins: list[StandIn], folder: Path) -> None:
    """Compile the stand-ins into a folder; what stood there of an earlier build and is not wanted goes.

    Raises:
        ToolMissingError: there is no C compiler.
        subprocess.CalledProcessError: it refused.
    """
    for standin in standins:
        compiler("C++" if standin.base else "C")  # before anything is touched
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {standin.soname for standin in standins}
    for old in folder.glob("*.so*"):
        if old.name not in wanted:
            old.unlink()
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        for standin in standins:
            _compile(standin, Path(scratch))
            (Path(scratch) / standin.soname).replace(folder / standin.soname)


def _compile(standin: StandIn, scratch: Path) -> None:
    language = "C++" if standin.base else "C"
    source, script = scratch / ("standin.cpp" if standin.base else "standin.c"), scratch / "map"
    lines = [*map(standin.body, standin.functions), "extern int standin_empty;", ""]
    text = standin.base.read_text(encoding="ascii") if standin.base else ""
    source.write_text(text + "\n".join(lines), encoding="ascii")
    flags = ["-shared", "-fPIC", "-w", "-fno-builtin", f"-Wl,-soname,{standin.soname}"]
    versions = sorted({version for version in standin.functions.values() if version})
    if versions:
        script.write_text(
            "".join(_node(standin, version) for version in versions), encoding="ascii"
        )
        flags.append(f"-Wl,--version-script,{script}")
    if standin.links:
        flags += ["-Wl,--no-as-needed", str(standin.links)]
    output = str(scratch / standin.soname)
    subprocess.run(
        [compiler(language), "-o", output, str(source), *flags],
        check=True,
        capture_output=True,
        text=True,
    )


def _node(standin: StandIn, version: str) -> str:
    names = "; ".join(name for name, of in standin.functions.items() if of == version)
    return f"{version} {{ global: {names}; }};\n"
