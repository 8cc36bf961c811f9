"""Which CANN a probe runs on, as the environment that its processes start from."""

from collections.abc import Mapping
from pathlib import Path

from capture_canary import emulate

INSTALLED = (
    "/usr/local/Ascend/cann",
    "/usr/local/Ascend/ascend-toolkit/latest",
)
"""Where CANN is installed by default, from 8.5 on and before."""


def base_environment(environ: Mapping[str, str], emulation: str | None) -> dict[str, str]:
    """Return `environ` with the CANN to use named in it: emulated, that of ASCEND_HOME_PATH, or an installed one.

    Where there is none, ASCEND_HOME_PATH stays unset; the probe then says so.

    Raises:
        emulate.EmulationError: `emulation` is not a valid setting, or there is none and the CANN is an emulated one.
    """
    if emulation is not None:
        return {**environ, **emulate.environment(emulate.parse(emulation), environ)}
    base = {name: value for name, value in environ.items() if name != "CAPTURE_CANARY_EMULATE"}
    if not base.get("ASCEND_HOME_PATH"):
        found = next((home for home in INSTALLED if Path(home, "lib64").is_dir()), None)
        if found:
            base["ASCEND_HOME_PATH"] = found
    home = base.get("ASCEND_HOME_PATH")
    if home and emulate.made_of(Path(home)):
        # Nobody asked for it: what it shows must not pass for a node's.
        raise emulate.EmulationError(
            f"the CANN in {home} is an emulated one; say so by --emulate or CAPTURE_CANARY_EMULATE"
        )
    return base
