"""CANN through ctypes: the few calls that a torch-free probe makes, each checked.

Prototypes and constants: acl/acl_rt.h of hicann/runtime (v8.5.0 to v9.1.0) and hccl/hccl.h, hccl_types.h, hccl_comm.h
of hcomm 9.0. Libraries are asked for symbols by handle, as torch-npu up to 2.9 does.
"""

import ctypes
from pathlib import Path
from typing import Any

ROOT_INFO_BYTES = 4108  # HCCL_ROOT_INFO_BYTES
_CONFIG_MAGIC = 0xF0F0F0F0  # HCCL_COMM_CONFIG_MAGIC_WORD
# Version 4 is the oldest that has the expansion mode; a newer HCCL takes its defaults for the fields behind it.
_CONFIG_VERSION = 4
_NOT_SET = 0xFFFFFFFF
_FP32, _SUM = 4, 0  # HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM
_MALLOC_NORMAL_ONLY = 2  # ACL_MEM_MALLOC_NORMAL_ONLY
_CAPTURE_GLOBAL = 0  # ACL_MODEL_RI_CAPTURE_MODE_GLOBAL, torch.npu.graph's default
_DEVICE_TO_DEVICE = 3  # ACL_MEMCPY_DEVICE_TO_DEVICE
_VERSION_BYTES = 128  # ACL_PKG_VERSION_MAX_SIZE
EXPANSION_AI_CPU = 2  # HcclCommConfig.hcclOpExpansionMode
PACKAGES = ("runtime", "hcomm", "hccl")


class CannError(RuntimeError):
    """A call of CANN failed. `code` is what it returned, None where it could not be made at all."""

    def __init__(self, message: str, code: int | None = None) -> None:
        """Keep the return code beside the words."""
        super().__init__(message)
        self.code = code


class _CommConfig(ctypes.Structure):
    """HcclCommConfig, as far as version 4 of it goes."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("magic", ctypes.c_uint32),
        ("version", ctypes.c_uint32),
        ("reserved", ctypes.c_uint64),
        ("buffer_size", ctypes.c_uint32),
        ("deterministic", ctypes.c_uint32),
        ("comm_name", ctypes.c_char * 128),
        ("udi", ctypes.c_char * 128),
        ("expansion_mode", ctypes.c_uint32),
    )


class Cann:
    """The CANN that ASCEND_HOME_PATH names, loaded into this process."""

    def __init__(self, home: Path) -> None:
        """Load libascendcl and libhccl from `home`/lib64.

        Raises:
            CannError: a library is missing or does not load.
        """
        self._acl = _load(home / "lib64" / "libascendcl.so")
        self._hccl = _load(home / "lib64" / "libhccl.so")

    def _call(self, library: ctypes.CDLL, name: str, *args: Any) -> None:
        try:
            function = getattr(library, name)
        except AttributeError as error:
            raise CannError(f"the CANN here has no {name}") from error
        function.restype = ctypes.c_int32
        code: int = function(*args)
        if code != 0:
            raise CannError(f"{name} returned {code}{self._explain(name, code)}", code)

    def _explain(self, name: str, code: int) -> str:
        """Return what CANN itself says of an error, for the reason that an operator reads."""
        said = []
        if name.startswith("Hccl"):
            said.append(_text(self._hccl.HcclGetErrorString, code))
        said.append(_text(self._acl.aclGetRecentErrMsg))
        text = ": ".join(part for part in said if part)
        return f": {text[:400]}" if text else ""

    def open(self, device: int) -> None:
        """Initialise ACL and take an NPU (numbered as ASCEND_RT_VISIBLE_DEVICES leaves them)."""
        self._call(self._acl, "aclInit", None)
        self._call(self._acl, "aclrtSetDevice", ctypes.c_int32(device))

    def device_count(self) -> int:
        """Return how many NPUs this process may open."""
        count = ctypes.c_uint32()
        self._call(self._acl, "aclrtGetDeviceCount", ctypes.byref(count))
        return count.value

    def close(self, device: int) -> None:
        """Give the NPU back. This releases what this process holds on it; it resets nothing else."""
        self._call(self._acl, "aclrtResetDevice", ctypes.c_int32(device))
        self._call(self._acl, "aclFinalize")

    def soc_name(self) -> str:
        """Return the SoC's name, e.g. Ascend910_9391 on A3."""
        return _text(self._acl.aclrtGetSocName)

    def versions(self) -> dict[str, str]:
        """Return the versions of the loaded packages, of those that answer (aclsysGetVersionStr: since 8.5)."""
        if not hasattr(self._acl, "aclsysGetVersionStr"):
            return {}
        found = {}
        for package in PACKAGES:
            text = ctypes.create_string_buffer(_VERSION_BYTES)
            name = ctypes.create_string_buffer(package.encode())
            if self._acl.aclsysGetVersionStr(name, text) == 0:
                found[package] = text.value.decode(errors="replace")
        return found

    def malloc(self, size: int) -> ctypes.c_void_p:
        """Return `size` bytes of HBM."""
        pointer = ctypes.c_void_p()
        self._call(
            self._acl,
            "aclrtMalloc",
            ctypes.byref(pointer),
            ctypes.c_size_t(size),
            _MALLOC_NORMAL_ONLY,
        )
        return pointer

    def free(self, pointer: ctypes.c_void_p) -> None:
        """Give HBM back."""
        self._call(self._acl, "aclrtFree", pointer)

    def copy_on_device(
        self,
        to: ctypes.c_void_p,
        source: ctypes.c_void_p,
        size: int,
        stream: ctypes.c_void_p,
    ) -> None:
        """Put a copy of `size` bytes within the NPU on a stream."""
        bytes_ = ctypes.c_size_t(size)
        self._call(
            self._acl,
            "aclrtMemcpyAsync",
            to,
            bytes_,
            source,
            bytes_,
            _DEVICE_TO_DEVICE,
            stream,
        )

    def create_stream(self) -> ctypes.c_void_p:
        """Return a new stream on the current NPU."""
        stream = ctypes.c_void_p()
        self._call(self._acl, "aclrtCreateStream", ctypes.byref(stream))
        return stream

    def destroy_stream(self, stream: ctypes.c_void_p) -> None:
        """Give a stream back."""
        self._call(self._acl, "aclrtDestroyStream", stream)

    def synchronize(self, stream: ctypes.c_void_p) -> None:
        """Wait until a stream has done its work."""
        self._call(self._acl, "aclrtSynchronizeStream", stream)

    def capture_begin(self, stream: ctypes.c_void_p) -> None:
        """Begin a capture in GLOBAL mode, as torch.npu.graph does."""
        self._call(self._acl, "aclmdlRICaptureBegin", stream, ctypes.c_int(_CAPTURE_GLOBAL))

    def capture_end(self, stream: ctypes.c_void_p) -> ctypes.c_void_p:
        """End the capture and return the graph."""
        graph = ctypes.c_void_p()
        self._call(self._acl, "aclmdlRICaptureEnd", stream, ctypes.byref(graph))
        return graph

    def destroy_graph(self, graph: ctypes.c_void_p) -> None:
        """Destroy a captured graph."""
        self._call(self._acl, "aclmdlRIDestroy", graph)

    def root_info(self) -> bytes:
        """Return what the other ranks need to join a communicator of this rank."""
        info = ctypes.create_string_buffer(ROOT_INFO_BYTES)
        self._call(self._hccl, "HcclGetRootInfo", info)
        return info.raw

    def create_communicator(
        self, *, root: bytes, rank: int, ranks: int, buffer_mb: int, expansion_mode: int = 0
    ) -> ctypes.c_void_p:
        """Return a communicator; `expansion_mode` 0 leaves the choice to HCCL_OP_EXPANSION_MODE."""
        config = _CommConfig(
            size=ctypes.sizeof(_CommConfig),
            magic=_CONFIG_MAGIC,
            version=_CONFIG_VERSION,
            buffer_size=buffer_mb,
            deterministic=_NOT_SET,
            expansion_mode=expansion_mode,
        )
        communicator = ctypes.c_void_p()
        self._call(
            self._hccl,
            "HcclCommInitRootInfoConfig",
            ctypes.c_uint32(ranks),
            ctypes.create_string_buffer(root, ROOT_INFO_BYTES),
            ctypes.c_uint32(rank),
            ctypes.byref(config),
            ctypes.byref(communicator),
        )
        return communicator

    def destroy_communicator(self, communicator: ctypes.c_void_p) -> None:
        """Give a communicator, its buffers and its resource lists back."""
        self._call(self._hccl, "HcclCommDestroy", communicator)

    def all_reduce(
        self,
        send: ctypes.c_void_p,
        receive: ctypes.c_void_p,
        count: int,
        communicator: ctypes.c_void_p,
        stream: ctypes.c_void_p,
    ) -> None:
        """Put a sum of `count` fp32 elements on a stream."""
        self._call(
            self._hccl,
            "HcclAllReduce",
            send,
            receive,
            ctypes.c_uint64(count),
            _FP32,
            _SUM,
            communicator,
            stream,
        )

    def all_gather(
        self,
        send: ctypes.c_void_p,
        receive: ctypes.c_void_p,
        count: int,
        communicator: ctypes.c_void_p,
        stream: ctypes.c_void_p,
    ) -> None:
        """Put a gathering of `count` fp32 elements of each rank on a stream."""
        self._call(
            self._hccl,
            "HcclAllGather",
            send,
            receive,
            ctypes.c_uint64(count),
            _FP32,
            communicator,
            stream,
        )


def _text(function: Any, *args: int) -> str:
    """Return the C string of a function as one line."""
    function.restype = ctypes.c_char_p
    return " ".join((function(*args) or b"").decode(errors="replace").split())


def _load(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise CannError(f"cannot load {path}: {error}") from error
