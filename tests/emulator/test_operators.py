"""The compile options and the arguments of operators: what clients set, they read back."""

import ctypes
from pathlib import Path

import pytest

from capture_canary.native import emulated_cann_dir

INVALID = 100000
NULL_POINTER = 161001
JIT_COMPILE, PRECISION_MODE = 10, 0  # aclCompileOpt
FLOAT16, FORMAT_ND = 1, 2  # aclDataType, aclFormat


@pytest.fixture(scope="module")
def compiler() -> ctypes.CDLL:
    library = load("libacl_op_compiler.so")
    for name in ("aclCreateTensorDesc", "aclCreateDataBuffer", "aclopCreateAttr"):
        getattr(library, name).restype = ctypes.c_void_p
    library.aclGetCompileoptSize.restype = ctypes.c_size_t
    library.aclGetTensorDescNumDims.restype = ctypes.c_size_t
    return library


@pytest.fixture(scope="module")
def arguments() -> ctypes.CDLL:
    library = load("libnnopbase.so")
    kinds = ("Tensor", "Scalar", "IntArray", "FloatArray", "BoolArray", "TensorList", "ScalarList")
    for kind in kinds:
        getattr(library, f"aclCreate{kind}").restype = ctypes.c_void_p
    return library


def load(name: str) -> ctypes.CDLL:
    return ctypes.CDLL(str(Path(emulated_cann_dir(), "lib64", name)))


def option(library: ctypes.CDLL, number: int) -> bytes:
    text = ctypes.create_string_buffer(library.aclGetCompileoptSize(number))
    assert library.aclGetCompileopt(number, text, ctypes.c_size_t(len(text))) == 0
    return text.value


def test_operators_are_not_compiled_unless_a_client_wants_it(compiler: ctypes.CDLL) -> None:
    assert option(compiler, JIT_COMPILE) == b"disable"
    assert compiler.aclSetCompileopt(JIT_COMPILE, b"enable") == 0
    assert option(compiler, JIT_COMPILE) == b"enable"
    assert compiler.aclSetCompileopt(JIT_COMPILE, b"disable") == 0


def test_an_option_that_is_none_or_does_not_fit_is_refused(compiler: ctypes.CDLL) -> None:
    short = ctypes.create_string_buffer(3)
    assert compiler.aclGetCompileopt(JIT_COMPILE, short, ctypes.c_size_t(3)) == INVALID
    assert compiler.aclGetCompileoptSize(PRECISION_MODE) == 0
    for number in (-1, 64, 1 << 30):
        assert compiler.aclSetCompileopt(number, b"x") == INVALID
        assert compiler.aclGetCompileoptSize(number) == 0
    assert compiler.aclSetCompileopt(PRECISION_MODE, None) == INVALID
    assert compiler.aclSetCompileopt(PRECISION_MODE, b"x" * 5000) == INVALID


def test_there_is_no_compiler_behind_it(compiler: ctypes.CDLL) -> None:
    assert compiler.aclopCompileAndExecute() != 0
    assert compiler.aclopCompileAndExecuteV2() != 0


def test_a_descriptor_tells_what_it_was_made_of(compiler: ctypes.CDLL) -> None:
    sizes = (ctypes.c_int64 * 3)(2, 3, 5)
    made = ctypes.c_void_p(compiler.aclCreateTensorDesc(FLOAT16, 3, sizes, FORMAT_ND))
    assert compiler.aclGetTensorDescType(made) == FLOAT16
    assert compiler.aclGetTensorDescFormat(made) == FORMAT_ND
    assert compiler.aclGetTensorDescNumDims(made) == 3
    size = ctypes.c_int64()
    assert compiler.aclGetTensorDescDimV2(made, ctypes.c_size_t(2), ctypes.byref(size)) == 0
    assert size.value == 5
    code = compiler.aclGetTensorDescDimV2(made, ctypes.c_size_t(3), ctypes.byref(size))
    assert code == INVALID
    compiler.aclDestroyTensorDesc(made)
    assert compiler.aclCreateTensorDesc(FLOAT16, -1, sizes, FORMAT_ND) is None


def tensor(library: ctypes.CDLL, *sizes: int) -> ctypes.c_void_p:
    dims = (ctypes.c_int64 * len(sizes))(*sizes)
    count, zero = ctypes.c_uint64(len(sizes)), ctypes.c_int64(0)
    made = library.aclCreateTensor(
        dims, count, FLOAT16, None, zero, FORMAT_ND, dims, count, ctypes.c_void_p(0x1000)
    )
    return ctypes.c_void_p(made)


def test_a_tensor_tells_what_it_was_made_of(arguments: ctypes.CDLL) -> None:
    made = tensor(arguments, 7, 11)
    sizes, dims = ctypes.POINTER(ctypes.c_int64)(), ctypes.c_uint64()
    assert arguments.aclGetViewShape(made, ctypes.byref(sizes), ctypes.byref(dims)) == 0
    assert sizes[: dims.value] == [7, 11]
    ctypes.CDLL(None).free(sizes)
    kind, address = ctypes.c_int(), ctypes.c_void_p()
    assert arguments.aclGetDataType(made, ctypes.byref(kind)) == 0
    assert arguments.aclGetRawTensorAddr(made, ctypes.byref(address)) == 0
    assert (kind.value, address.value) == (FLOAT16, 0x1000)
    assert arguments.aclDestroyTensor(made) == 0
    assert arguments.aclGetDataType(None, ctypes.byref(kind)) == NULL_POINTER


def test_a_list_counts_and_owns_its_members(arguments: ctypes.CDLL) -> None:
    members = (ctypes.c_void_p * 2)(*(tensor(arguments, n).value for n in (1, 2)))
    made = ctypes.c_void_p(arguments.aclCreateTensorList(members, ctypes.c_uint64(2)))
    count = ctypes.c_uint64()
    assert arguments.aclGetTensorListSize(made, ctypes.byref(count)) == 0
    assert count.value == 2
    assert arguments.aclDestroyTensorList(made) == 0


@pytest.mark.parametrize(
    "kind", ["IntArray", "FloatArray", "BoolArray", "TensorList", "ScalarList"]
)
def test_arrays_may_be_empty_and_never_come_from_nothing(arguments: ctypes.CDLL, kind: str) -> None:
    create = getattr(arguments, f"aclCreate{kind}")
    made = ctypes.c_void_p(create(None, ctypes.c_uint64(0)))
    assert made.value
    assert getattr(arguments, f"aclDestroy{kind}")(made) == 0
    assert create(None, ctypes.c_uint64(3)) is None
    assert create((ctypes.c_char * 8)(), ctypes.c_uint64(1 << 63)) is None
    assert getattr(arguments, f"aclDestroy{kind}")(None) == 0
