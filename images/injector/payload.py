"""Makes what the injector copies: the package and its dependencies for every Python 3.10 to 3.14, of one architecture.

Every Python's wheels go into the same folder. That works since extension modules carry their Python in their names
(`_core.cpython-311-x86_64-linux-gnu.so`), and is checked: whatever else two wheels both have must be the same.

    python images/injector/payload.py --arch aarch64 images/injector/payload
"""

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""As machines call themselves, and as images do."""
_BESIDE_THE_PACKAGE = ("capture_canary", "msgspec")
"""What ranks need, which a probe starts with the server's Python and this folder alone."""
_NOT_RUN = (".pyi", ".c", ".h", "RECORD", "INSTALLER", "direct_url.json")
_NOT_USED = "yaml/_yaml."
"""libyaml's binding, 2 MB for each Python: settings are read by PyYAML's own loader."""


class PayloadError(Exception):
    """It cannot be made; the message says why."""


def build(out: Path, arch: str, wheel: Path | None = None) -> None:
    """Make the folder `out` anew.

    Args:
        out: where; what is there is removed.
        arch: x86_64 or aarch64.
        wheel: our wheel for it; None: it is built, by a cross compiler where that takes one.

    Raises:
        PayloadError: a step failed, or wheels contradict each other.
    """
    with tempfile.TemporaryDirectory() as work:
        wheels = Path(work, "wheels")
        own = wheel or own_wheel(arch, Path(work, "own"))
        if not own.name.endswith(f"_{arch}.whl"):
            raise PayloadError(f"{own}: is not for {arch}")
        _download(arch, wheels)
        shutil.rmtree(out, ignore_errors=True)
        for path in [own, *sorted(wheels.glob("*.whl"))]:
            _unpack(path, out)
    (out / "bin").mkdir()
    shutil.copy2(HERE / "capture-canary", out / "bin" / "capture-canary")
    (out / "run").mkdir()
    shutil.copy2(HERE / "start.py", out / "run" / "__main__.py")
    for folder in sorted(out.glob("deps/*")):
        folder.rename(out / "run" / folder.name)  # beside __main__.py, where its imports look first
    (out / "deps").rmdir()
    tags = [f"cpython-{version.replace('.', '')}" for version in PYTHONS]
    (out / "PYTHONS").write_text(" ".join(tags) + "\n")
    _sign(out, own.name.split("-")[1])


def own_wheel(arch: str, out: Path) -> Path:
    """Build our wheel for an architecture; return its path below `out`.

    Raises:
        PayloadError: there is no cross compiler, or the build failed.
    """
    environ = dict(os.environ)
    if arch != platform.machine():
        compiler = f"{arch}-linux-gnu-gcc"
        if shutil.which(compiler) is None:
            raise PayloadError(f"{compiler} is missing: apt install gcc-{arch}-linux-gnu")
        environ["_PYTHON_HOST_PLATFORM"] = f"linux-{arch}"
        environ["CMAKE_ARGS"] = (
            f"-DCMAKE_C_COMPILER={compiler} -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR={arch}"
        )
    with tempfile.TemporaryDirectory() as build_dir:
        settings = ["--config-settings", f"build-dir={build_dir}"]
        _pip("wheel", "--no-deps", *settings, "-w", str(out), str(ROOT), environ=environ)
    (wheel,) = out.glob("*.whl")
    return wheel


def _download(arch: str, out: Path) -> None:
    """Get the locked dependencies' wheels, those of one Python after those of another."""
    floors = [f"manylinux{name}_{arch}" for name in ("_2_28", "_2_17", "2014")]
    platforms = [word for floor in floors for word in ("--platform", floor)]
    locked = ["--require-hashes", "-r", str(ROOT / "images" / "requirements.txt")]
    for version in PYTHONS:
        which = ["--only-binary", ":all:", "--no-deps", "--python-version", version, *platforms]
        _pip("download", *which, *locked, "-d", str(out))


def _pip(*words: str, environ: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", *words, "--quiet", "--disable-pip-version-check"],
        check=False,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise PayloadError(f"pip {words[0]} failed:\n{done.stdout[-4000:]}")


def _unpack(wheel: Path, out: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        for name in packed.namelist():
            if name.endswith(("/", *_NOT_RUN)) or name.startswith(_NOT_USED):
                continue
            if _only_about(wheel, name):
                continue
            if name.startswith("/") or ".." in name.split("/") or ".data/" in name:
                raise PayloadError(f"{wheel.name}: {name} has no place in the payload")
            beside = name.split("/")[0] in _BESIDE_THE_PACKAGE
            target = out / ("lib" if beside else "deps") / name
            content = packed.read(name)
            if target.exists() and target.read_bytes() != content:
                raise PayloadError(f"{wheel.name}: {name} is another one than in the wheels before")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            target.chmod(0o755 if packed.getinfo(name).external_attr >> 16 & 0o100 else 0o644)


def _only_about(wheel: Path, name: str) -> bool:
    """Whether a file tells of one wheel among several: its tags. Versions and licences are kept."""
    return name.startswith(wheel.name.split("-")[0]) and name.endswith(".dist-info/WHEEL")


def _sign(out: Path, version: str) -> None:
    """List every file with its hash; name the version by its number and by what is in it."""
    paths = sorted(path.relative_to(out) for path in out.rglob("*") if path.is_file())
    lines = [f"{_digest(out / path)}  {path}\n" for path in paths]
    content = hashlib.sha256("".join(lines).encode()).hexdigest()[:12]
    (out / "VERSION").write_text(f"{version}-{content}\n")
    lines.append(f"{_digest(out / 'VERSION')}  VERSION\n")
    (out / "MANIFEST").write_text("".join(lines))
    _settle([out, *out.rglob("*")])


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _settle(paths: Iterable[Path]) -> None:
    """Give everything one time, so that the same sources make the same layer."""
    for path in paths:
        if path.is_dir():
            path.chmod(0o755)
        os.utime(path, (0, 0))


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--arch", choices=ARCHITECTURES, default=platform.machine())
    parser.add_argument("--wheel", type=Path, help="our wheel (it is built)")
    args = parser.parse_args()
    try:
        build(args.out, args.arch, args.wheel)
    except PayloadError as error:
        sys.stderr.write(f"payload: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
