"""Run in an environment with vLLM: starts the LLM of a probe's spec, read from standard input, and ends."""

import sys

from capture_canary.probe.messages import decode_spec
from capture_canary.probe.vllm.leader import start

if __name__ == "__main__":
    start(decode_spec(sys.stdin.buffer.read()))
