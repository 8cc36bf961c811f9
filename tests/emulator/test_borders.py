"""A call crosses the library borders that it crosses on a node, so that what is preloaded sees what it sees there."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.emulator.child import compile_c, emulated


@pytest.mark.parametrize(
    ("cann", "counts"),
    [
        ("8.5.0", "5 5 5"),
        ("9.0.0", "5 5 5"),
        ("9.1.0", "5 5 5"),
        ("9.2.0-beta.1", "5 5 0"),  # rt* is bound inside libruntime
    ],
)
def test_a_copy_is_seen_once_at_each_border(tmp_path, cann, counts):
    environ = emulated(tmp_path, f"cann={cann}")
    libraries = Path(environ["ASCEND_HOME_PATH"], "lib64")
    client = compile_c(
        "client.c",
        tmp_path / "client",
        f"-L{libraries}",
        "-lacl_rt",
        f"-Wl,-rpath-link,{libraries}",
    )
    impl = (
        '-DIMPL_LIBRARY="libruntime.so"'
        if cann.startswith("9.2")
        else '-DIMPL_LIBRARY="libacl_rt_impl.so"'
    )
    counter = compile_c("counter.c", tmp_path / "counter.so", "-shared", "-fPIC", impl, "-ldl")
    environ |= {"LD_PRELOAD": str(counter), "COUNT_COPIES": "1"}
    done = subprocess.run([client], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == counts


@pytest.mark.parametrize("cann", ["8.5.0", "9.2.0-beta.1"])
def test_everything_is_found_on_libascendcl_and_lies_where_it_lies_on_a_node(tmp_path, cann):
    environ = emulated(tmp_path, f"cann={cann}")
    code = """
import ctypes, os
lib64 = os.path.join(os.environ["ASCEND_HOME_PATH"], "lib64")
acl = ctypes.CDLL(os.path.join(lib64, "libascendcl.so"))
for name in ("aclInit", "aclrtMemcpy", "aclmdlRICaptureBegin", "aclGetRecentErrMsg", "rtMemcpy", "aclrtMemcpyImpl"):
    getattr(acl, name)
loaded = {line.split()[-1] for line in open("/proc/self/maps") if "/lib" in line and ".so" in line}
print(sorted({os.path.basename(path) for path in loaded} & set(os.listdir(lib64))))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    impl = [] if cann.startswith("9.2") else ["libacl_rt_impl.so"]
    assert done.stdout.strip() == str(["libacl_rt.so", *impl, "libascendcl.so", "libruntime.so"])


def test_what_the_libraries_export_is_cann_s_or_marked_as_ours(tmp_path):
    environ = emulated(tmp_path)
    libraries = Path(environ["ASCEND_HOME_PATH"], "lib64")
    nm = shutil.which("nm")
    assert nm, "binutils come with the C compiler"
    for name in ("libruntime.so", "libacl_rt.so", "libacl_rt_impl.so"):
        done = subprocess.run(
            [nm, "-D", "--defined-only", libraries / name],
            capture_output=True,
            text=True,
            check=True,
        )
        symbols = [line.split()[-1] for line in done.stdout.splitlines()]
        assert symbols
        assert all(symbol.startswith(("rt", "acl", "emu")) for symbol in symbols)
