"""Capture Canary: health checks of graph capture on Ascend NPU nodes."""


def __getattr__(name: str) -> str:
    """Return `__version__` when asked; the module is made by the build."""
    if name == "__version__":
        from importlib import import_module, util  # noqa: PLC0415  # the point: not at import

        if util.find_spec("capture_canary._version") is None:  # an editable tree, built before
            return import_module("importlib.metadata").version("capture-canary")  # type: ignore[no-any-return]
        version: str = import_module("capture_canary._version").VERSION
        return version
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
