"""Stand-ins: whatever an installed package links and nobody offers, it must load with."""

import subprocess
import sys
from pathlib import Path

import pytest

from capture_canary.environments import standins
from capture_canary.environments.elf import ToolMissingError, read

CLIENT = """
import ctypes, sys
client = ctypes.CDLL(sys.argv[1])
operators = ctypes.CDLL("libopapi.so")
names = ["aclMadeUp", "cudaMadeUp", "aclTrue"]
print([getattr(client, "call_" + name)() for name in names], operators.aclnnMadeUp())
print(hasattr(operators, "aclnnNotWhole"))
"""


def compile_library(path: Path, source: str, *flags: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    unit = path.with_suffix(".c")
    unit.write_text(source)
    soname = f"-Wl,-soname,{path.name}"
    command = [standins.compiler(), "-shared", "-fPIC", soname, "-o", str(path), str(unit), *flags]
    subprocess.run(command, check=True)
    unit.unlink()
    return path


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A site-packages whose torch_npu links CANN and CUDA, and an emulated CANN that has a part of it."""
    # The libraries it is linked against: gone afterwards, but for the emulated one.
    there = tmp_path / "build"
    versions = there / "map"
    there.mkdir()
    versions.write_text("libcudart.so.12 { global: cudaMadeUp; };")
    cuda = compile_library(
        there / "libcudart.so.12",
        "int cudaMadeUp(void) { return 0; }",
        f"-Wl,--version-script,{versions}",
    )
    runner = compile_library(there / "libge_runner.so", "int aclMadeUp(void) { return 0; }")
    emulated = compile_library(
        tmp_path / "lib64" / "libascendcl.so", "int aclTrue(void) { return 5; }"
    )
    wrappers = "".join(
        f"int {name}(void); int call_{name}(void) {{ return {name}(); }}\n"
        for name in ("aclMadeUp", "cudaMadeUp", "aclTrue")
    )
    strings = 'const char *names[] = {"aclnnMadeUp", "aclnnNotWhole not found", "xaclnnTail"};\n'
    compile_library(
        tmp_path / "site" / "torch_npu" / "lib" / "libtorch_npu.so",
        wrappers + strings,
        *(str(path) for path in (cuda, runner, emulated)),
        "-Wl,-z,now",
    )
    for path in (cuda, runner):
        path.unlink()
    return tmp_path


def test_a_client_loads_and_each_function_answers_what_it_should(machine: Path) -> None:
    site, emulated, out = machine / "site", machine / "lib64", machine / "out"
    planned = standins.plan(site, emulated)
    standins.build(planned, out)
    client = site / "torch_npu" / "lib" / "libtorch_npu.so"
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, str(client)],
        env={"LD_LIBRARY_PATH": f"{emulated}:{out}"},
        capture_output=True,
        text=True,
        check=False,
    )
    refused = standins.ACL_ERROR_RT_FEATURE_NOT_SUPPORT
    assert done.stdout.splitlines() == [
        f"[{refused}, {standins.CUDA_ERROR_NO_DEVICE}, 5] 0",
        "False",
    ], done.stderr


def test_what_the_emulated_cann_has_is_not_made_again(machine: Path) -> None:
    planned = standins.plan(machine / "site", machine / "lib64")
    assert {one.soname: set(one.functions) for one in planned} == {
        "libcudart.so.12": {"cudaMadeUp"},
        "libge_runner.so": {"aclMadeUp"},
        "libopapi.so": {"aclnnMadeUp", "aclnnTail"},
    }


def test_libraries_of_an_earlier_build_go(machine: Path) -> None:
    out = machine / "out"
    compile_library(out / "libold.so", "int old;")
    standins.build(standins.plan(machine / "site", machine / "lib64"), out)
    assert sorted(file.name for file in out.iterdir()) == [
        "libcudart.so.12",
        "libge_runner.so",
        "libopapi.so",
    ]


def test_they_are_made_again_only_where_packages_or_the_emulated_cann_changed(
    machine: Path,
) -> None:
    site, emulated, out = machine / "site", machine / "lib64", machine / "out"
    assert not standins.fresh(site, emulated, out)
    standins.refresh(site, emulated, out)
    made = (out / "libge_runner.so").stat()
    assert standins.fresh(site, emulated, out)
    standins.refresh(site, emulated, out)
    assert (out / "libge_runner.so").stat() == made
    (site / "torch_npu-9.9.dist-info").mkdir()
    assert not standins.fresh(site, emulated, out)
    standins.refresh(site, emulated, out)
    compile_library(emulated / "libge_runner.so", "int aclMadeUp(void) { return 0; }")
    assert not standins.fresh(site, emulated, out)
    standins.refresh(site, emulated, out)
    assert not (out / "libge_runner.so").exists()  # now there is a true one


def test_the_operators_library_offers_what_makes_their_arguments(machine: Path) -> None:
    compile_library(machine / "lib64" / "libnnopbase.so", "int aclCreateTensor(void) { return 0; }")
    out = machine / "out"
    standins.build(standins.plan(machine / "site", machine / "lib64"), out)
    assert "libnnopbase.so" in read(out / "libopapi.so").needed


def test_no_name_in_a_library_leaves_the_folder_or_the_source(machine: Path) -> None:
    """Whatever a package's library asks for: a path, C code, nothing at all."""
    there = machine / "build"
    library = there / "libodd.so"
    subprocess.run(
        [
            standins.compiler(),
            "-shared",
            "-fPIC",
            "-Wl,-soname,../../libodd.so",
            "-o",
            str(library),
            "-x",
            "c",
            "-",
        ],
        input='int odd(void) __asm__("odd$.x"); int odd(void) { return 0; }',
        text=True,
        check=True,
    )
    compile_library(
        machine / "site" / "torch_npu" / "libclient.so",
        'int odd(void) __asm__("odd$.x"); int call(void) { return odd(); }',
        str(library),
    )
    (machine / "site" / "torch_npu" / "libempty.so").touch()
    planned = standins.plan(machine / "site", machine / "lib64")
    assert {one.soname for one in planned} == {"libcudart.so.12", "libge_runner.so", "libopapi.so"}
    standins.build(planned, machine / "out")


def test_a_machine_without_a_compiler_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(ToolMissingError, match="no C compiler"):
        standins.compiler()


def test_a_machine_without_readelf_is_told_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ToolMissingError, match="install binutils"):
        read(tmp_path)


def test_what_is_no_library_asks_for_nothing(tmp_path: Path) -> None:
    for name, content in (("empty", b""), ("text", b"hello"), ("torn", b"\x7fELF" + bytes(60))):
        (tmp_path / name).write_bytes(content)
        found = read(tmp_path / name)
        assert (found.needed, found.asked, found.defined) == (set(), {}, set())


ATB_CLIENT = """
#include <cstdint>
#include <cstdio>
#include <string>
namespace atb {
class Context {
public:
    virtual ~Context() = default;
    virtual int32_t SetExecuteStream(void *stream) = 0;
    virtual void *GetExecuteStream() const = 0;
};
struct VariantPack {};
class Operation {
public:
    virtual ~Operation() = default;
    virtual std::string GetName() const = 0;
    virtual int32_t InferShape(const int &, int &) const = 0;
    virtual uint32_t GetInputNum() const = 0;
    virtual uint32_t GetOutputNum() const = 0;
    virtual int32_t Setup(const VariantPack &, uint64_t &workspace, Context *) = 0;
    virtual int32_t Execute(const VariantPack &, uint8_t *, uint64_t, Context *) = 0;
};
int32_t CreateContext(Context **);
int32_t DestroyContext(Context *);
int32_t DestroyOperation(Operation *);
namespace infer { struct MadeUpParam {}; }
template <typename Param> int32_t CreateOperation(const Param &, Operation **);
extern template int32_t CreateOperation(const infer::MadeUpParam &, Operation **);
}
extern "C" int client() {
    atb::Context *context = nullptr;
    atb::Operation *operation = nullptr;
    uint64_t workspace = 7;
    int stream = 0;
    int failed = atb::CreateContext(&context) || atb::CreateOperation(atb::infer::MadeUpParam{}, &operation);
    failed |= context->SetExecuteStream(&stream) || context->GetExecuteStream() != &stream;
    failed |= operation->GetName().empty() || operation->Setup({}, workspace, context) || workspace;
    failed |= operation->Execute({}, nullptr, 0, context);
    return failed | atb::DestroyOperation(operation) | atb::DestroyContext(context);
}
"""


def test_operations_of_atb_are_called_through_their_vtables(tmp_path: Path):
    """A client of libatb as torch-npu is one, with declarations of its own."""
    folder = tmp_path / "site" / "torch_npu" / "lib"
    folder.mkdir(parents=True)
    source = tmp_path / "client.cpp"
    source.write_text(ATB_CLIENT)
    command = [standins.compiler("C++"), "-shared", "-fPIC", str(source), "-o"]
    compile_library(tmp_path / "libatb.so", "int none;")
    links = ["-Wl,--no-as-needed", str(tmp_path / "libatb.so")]
    subprocess.run([*command, str(folder / "libop_plugin_atb.so"), *links], check=True)
    (tmp_path / "lib64").mkdir()

    standins.refresh(tmp_path / "site", tmp_path / "lib64", tmp_path / "out")

    call = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).client())"
    environ = {"LD_LIBRARY_PATH": str(tmp_path / "out")}
    client = str(folder / "libop_plugin_atb.so")
    assert (
        0
        == subprocess.run([sys.executable, "-c", call, client], env=environ, check=False).returncode
    )
