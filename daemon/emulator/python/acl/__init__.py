"""The stand-in for pyACL, CANN's Python package: what vllm-ascend imports of it, on the emulated runtime."""

from acl import rt

__all__ = ["rt"]
