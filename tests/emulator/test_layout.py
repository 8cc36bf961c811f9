import os
import subprocess
import sys
from pathlib import Path

import pytest

from capture_canary import emulate
from tests.emulator.child import emulated, start

ARCH = f"{os.uname().machine}-linux"


@pytest.mark.parametrize(
    ("cann", "inside"),
    [
        ("8.2.RC1.alpha003", "ascend-toolkit/latest"),
        ("8.3.RC2", "ascend-toolkit/latest"),
        ("8.5.0", "cann"),
        ("9.1.0-beta.1", "cann"),
        ("9.2.0-beta.1", "cann"),
    ],
)
def test_a_cann_lies_as_its_version_lies(tmp_path, cann, inside):
    settings = emulate.parse(f"cann={cann},hcomm=8.5.1")
    home = emulate.home(settings, {"XDG_CACHE_HOME": str(tmp_path)})
    assert str(home).endswith(inside)
    info = (home / ARCH / "ascend_toolkit_install.info").read_text().splitlines()
    assert info[:2] == ["package_name=Ascend-cann-toolkit", f"version={cann}"]
    assert f"path={home / ARCH}" in info
    for package, version in (("runtime", cann), ("compiler", cann)):
        assert (home / package / "version.info").read_text().startswith(f"Version={version}\n")
    for package, version in (("runtime", cann), ("hcomm", "8.5.1"), ("hccl", "8.5.1")):
        text = (home / "share/info" / package / "version.info").read_text()
        assert text.startswith(f"Version={version}\nversion_dir=")
    assert (home / "opp").is_dir()
    assert os.access(home / "bin/npu-smi", os.X_OK)
    libraries = {path.name: path.resolve().parent.name for path in (home / "lib64").iterdir()}
    assert all((home / "lib64" / name).exists() for name in libraries)
    assert libraries["libascendcl.so"] == "lib64"
    assert ("libacl_rt_impl.so" in libraries) == (not cann.startswith("9.2"))
    expected = (
        "lib64-8.5" if cann.startswith("8") else "lib64-9.2" if cann.startswith("9.2") else "lib64"
    )
    assert libraries["libacl_rt.so"] == expected


def test_a_newer_hcomm_finds_the_destroy_callback_beside_an_older_cann(tmp_path):
    for hcomm, expected in (("8.5.0", "lib64-8.5"), ("9.0.0", "lib64"), ("9.1.0-pr2405", "lib64")):
        settings = emulate.parse(f"cann=8.5.0,hcomm={hcomm}")
        home = emulate.home(settings, {"XDG_CACHE_HOME": str(tmp_path)})
        assert (home / "lib64/libacl_rt.so").resolve().parent.name == expected


def test_the_environment_goes_before_what_is_there(tmp_path):
    before = {"XDG_CACHE_HOME": str(tmp_path), "PATH": "/bin", "LD_LIBRARY_PATH": "/lib"}
    settings = emulate.parse("cann=9.0.0,npus=4,peers=0")
    found = emulate.environment(settings, before)
    home = emulate.home(settings, before)
    assert found["PATH"] == f"{home}/bin:/bin"
    assert found["LD_LIBRARY_PATH"] == f"{home}/lib64:/lib"
    assert emulate.parse(found["CAPTURE_CANARY_EMULATE"]) == settings
    assert Path(found["ASCEND_OPP_PATH"]).is_dir()
    assert emulate.environment(settings, before) == found


def test_processes_that_lay_it_out_together_share_it(tmp_path):
    environ = emulated(tmp_path, "cann=9.0.0")
    code = "from capture_canary import emulate; print(emulate.home(emulate.parse('cann=9.0.1')))"
    children = [start(code, environ) for _ in range(4)]
    ends = [(child.communicate(timeout=60), child.returncode) for child in children]
    assert [code for _, code in ends] == [0] * 4, ends
    assert len({output for (output, _), _ in ends}) == 1
    places = sorted(
        path.name for path in Path(environ["XDG_CACHE_HOME"], "capture-canary/emulated").iterdir()
    )
    assert [name[:5] for name in places] == ["9.0.0", "9.0.1"]


SETTINGS = emulate.parse("cann=8.5.0")


@pytest.mark.parametrize("environ", [{}, {"HOME": "/dev/null/none"}, {"XDG_CACHE_HOME": "/proc/1"}])
def test_without_a_home_it_lies_where_nobody_else_can_write(tmp_path, monkeypatch, environ):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    home = emulate.home(SETTINGS, environ)
    assert (home / "lib64" / "libhccl.so").exists()
    private = tmp_path / home.relative_to(tmp_path).parts[0]
    assert (private.stat().st_uid, private.stat().st_mode & 0o777) == (os.geteuid(), 0o700)
    assert emulate.home(SETTINGS, environ) == home


@pytest.mark.parametrize("trap", ["writable", "link", "another's"])
def test_what_somebody_else_laid_out_is_not_loaded(tmp_path, monkeypatch, trap):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "shared"))
    (tmp_path / "shared").mkdir()
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    private = tmp_path / "shared" / f".capture-canary-{os.geteuid()}"
    if trap == "link":
        private.symlink_to(theirs)
    else:
        private.mkdir()
        private.chmod(0o777 if trap == "writable" else 0o700)
    if trap == "another's":
        uid = os.geteuid()
        monkeypatch.setattr("os.geteuid", lambda: uid + 1)
        private.rename(tmp_path / "shared" / f".capture-canary-{uid + 1}")
    with pytest.raises(FileNotFoundError, match="no place for the emulated CANN"):
        emulate.home(SETTINGS, {})


def test_importing_it_is_light():
    heavy = {"torch", "rich", "structlog", "asyncio", "ctypes", "prometheus_client"}
    code = f"import sys, capture_canary.emulate; print(sorted(set(sys.modules) & {heavy}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_pyacl_copies(tmp_path: Path):
    """What vllm-ascend imports of CANN's Python package, found as a real CANN's is."""
    environ = emulate.environment(emulate.parse(""), {"XDG_CACHE_HOME": str(tmp_path)})
    code = (
        "import acl, ctypes, sys\n"
        "assert ctypes.CDLL('libascendcl.so').aclrtSetDevice(0) == 0\n"
        "a, b = ctypes.create_string_buffer(b'moved', 8), ctypes.create_string_buffer(8)\n"
        "code = acl.rt.memcpy(ctypes.addressof(b), 8, ctypes.addressof(a), 8, 0)\n"
        "sys.exit(code or b.value != b'moved')"
    )
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **environ}, check=False)
    assert 0 == done.returncode
