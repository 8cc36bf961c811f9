"""What our images add, and how long a container takes to its first scrape (docs/images.md).

Needs a Docker Engine (DOCKER_HOST) with emulated cells built: `capture-canary images standins` and `images build`.
"""

import argparse
import statistics
import time
from typing import Any

from capture_canary import __version__
from capture_canary.images import matrix
from capture_canary.images.engine import EngineError, connect
from capture_canary.images.layers import added

SCRAPE = """
import time, urllib.request
while True:
    try:
        urllib.request.urlopen("http://127.0.0.1:9877/metrics").read()
        break
    except OSError:
        time.sleep(0.005)
print(time.clock_gettime(time.CLOCK_MONOTONIC))
"""


def first_scrape(client: Any, tag: str) -> float:
    """Return seconds from `docker start` to the end of the first scrape, by a process in the container.

    The scraper is started in the same moment as the daemon, so that its own start is not added.
    """
    made = client.api.create_container(
        tag,
        [
            "/opt/capture-canary/bin/capture-canary run & exec /opt/capture-canary/bin/python -S -c '"
            + SCRAPE
            + "'"
        ],
        entrypoint=["/bin/sh", "-c"],
        host_config=client.api.create_host_config(
            network_mode="none", read_only=True, cap_drop=["ALL"]
        ),
    )["Id"]
    try:
        begin = time.clock_gettime(time.CLOCK_MONOTONIC)
        client.api.start(made)
        client.api.wait(made, timeout=60)
        return float(client.api.logs(made, stdout=True, stderr=False)) - begin
    finally:
        client.api.remove_container(made, force=True)


def main() -> None:
    """Print both for each emulated image that is here."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    try:
        client = connect()
    except EngineError as error:
        print(f"not measured: {error}")
        return
    emulated = [cell for cell in matrix.load() if cell.kind == "emulated"]
    here = [cell for cell in emulated if client.api.images(name=cell.tag(__version__))]
    if not here:
        print("not measured: no emulated cell is built (docs/images.md)")
    for cell in here:
        tag = cell.tag(__version__)
        size = added(client, tag, cell.base or "").added_bytes / 1e6
        times = [first_scrape(client, tag) for _ in range(runs)]
        print(
            f"{cell.name}: {size:.1f} MB added, start to first scrape {statistics.median(times):.2f} s "
            f"(median of {runs}, {min(times):.2f} to {max(times):.2f})"
        )


if __name__ == "__main__":
    main()
