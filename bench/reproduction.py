"""The full reproduction by real vLLM on the emulated CANN 8.5.0 and 9.1.0: lines, rounds side by side, its time.

Takes ten minutes. With a folder as argument its reports are kept there, and it goes on where it was ended.
"""

import contextlib
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from capture_canary import environments
from capture_canary.model import Report
from capture_canary.reproduction import said
from capture_canary.reproduction.outcome import outcomes

NAME = "vllm-0.23.0"
CANNS = ("8.5.0", "9.1.0")
PICTURE = Path(__file__).parent.parent / "docs" / "images" / "reproduction.png"


def reproduce(cann: str, folder: Path) -> tuple[Report, float]:
    """Return the report, and the seconds from the command's start to its end."""
    command = [sys.executable, "-m", "capture_canary.cli", "reproduce", "--env", NAME]
    command += ["--emulate", f"cann={cann},soc=a3", "-o", str(folder)]
    begin = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    seconds = time.monotonic() - begin
    assert done.returncode in (0, 1), f"exit code {done.returncode}"
    return msgspec.json.decode((folder / "report.json").read_bytes(), type=Report), seconds


def main() -> int:
    """Run it on each CANN; print the tables."""
    try:
        environments.find(NAME)
    except environments.RecipeError as missing:
        print(missing)
        return 0
    with contextlib.ExitStack() as undo:
        kept = (
            sys.argv[1] if len(sys.argv) > 1 else undo.enter_context(tempfile.TemporaryDirectory())
        )
        found = {cann: reproduce(cann, Path(kept, cann)) for cann in CANNS}
        shutil.copy(Path(kept, CANNS[0], "report.png"), PICTURE)
    print("| emulated CANN | verdict | growth law | both arms, start to report, s |")
    print("| --- | --- | --- | --- |")
    for cann, (report, seconds) in found.items():
        print(
            f"| {cann} | {said.called(report)} | {said.LAW[report.matches_law]} | {seconds:.0f} |"
        )
    print("\n| emulated CANN | arm | of a capture | with each further one (95 %), R², captures |")
    print("| --- | --- | --- | --- |")
    for cann, (report, _) in found.items():
        for one in outcomes(report):
            for what, line in (
                ("H2D copies", said.fitted(one.copies, 1, "")),
                ("time", said.fitted(one.seconds, 1e3, " ms")),
            ):
                print(f"| {cann} | {one.series.arm} | {what} | {line} |")
    print("\n| emulated CANN | arm | of each graph | round 1 | round 45 | round 100 |")
    print("| --- | --- | --- | --- | --- | --- |")
    for cann, (report, _) in found.items():
        for one in outcomes(report):
            for what, of in said.ROWS.items():
                cells = " | ".join(of(shown) for shown in one.shown)
                print(f"| {cann} | {one.series.arm} | {what} | {cells} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
