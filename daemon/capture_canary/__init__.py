"""Capture Canary: health checks of graph capture on Ascend NPU nodes."""


def __getattr__(name: str) -> str:
    """Return `__version__` when asked; the module is made by the build."""
    if name == "__version__":
        from importlib import import_module  # noqa: PLC0415  # the point: not at import

        version: str = import_module("capture_canary._version").VERSION
        return version
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
