"""Runs every bench and prints its table: the figures of the README and of docs/."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> int:
    """Run the scripts beside this one, each in a process of its own; 1 if one failed."""
    failed = []
    for script in sorted(HERE.glob("*.py")):
        if script.name == Path(__file__).name:
            continue
        print(f"\n## {script.stem}\n", flush=True)
        if subprocess.run([sys.executable, script], check=False).returncode:
            failed.append(script.name)
    print("\n## statistics\n", flush=True)
    quick = [sys.executable, "-m", "bench.statistics", "--quick"]
    if subprocess.run(quick, check=False, cwd=HERE.parent).returncode:
        failed.append("statistics")
    print("\n## interference\n", flush=True)
    if subprocess.run(
        [sys.executable, "-m", "bench.interference"], check=False, cwd=HERE.parent
    ).returncode:
        failed.append("interference")
    if failed:
        print(f"\nfailed: {', '.join(failed)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
