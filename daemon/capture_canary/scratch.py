"""Where to put what a run needs for its time: the temporary folder, or shared memory where a container has no other."""

import os
import tempfile
from pathlib import Path

_SHARED = Path("/dev/shm")  # noqa: S108  # used only by names that are made there, or checked to be ours


def scratch() -> Path:
    """Return the folder; with a read-only root and no /tmp that is /dev/shm, which every container has.

    Raises:
        FileNotFoundError: nothing can be written anywhere.
    """
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:
        if os.access(_SHARED, os.W_OK | os.X_OK):
            return _SHARED
        raise
