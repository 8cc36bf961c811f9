"""A server that has loaded and stays: usage: staying.py SERVER.PY ROUNDS, by `capture-canary exec`."""

import runpy
import signal
import sys

sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
signal.pause()
