"""Capture Canary: health checks of graph capture on Ascend NPU nodes."""


def __getattr__(name: str) -> str:
    """Return `__version__` when asked: reading package metadata costs a worker's start-up 20 ms."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415  # the point: not at import

        return version("capture-canary")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
