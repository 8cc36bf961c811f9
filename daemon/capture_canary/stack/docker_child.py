"""A child process: asks the Docker Engine for the allowed variables of some containers, prints them as JSON.

Needs the extra `docker`. Only `inspect` is called; of its answer nothing but allowed variables leaves this process.
"""

import sys

import msgspec

from capture_canary.stack.environ import ALLOWED
from capture_canary.stack.helpers import DEADLINE, Answer


class _Config(msgspec.Struct):
    """Of a container: what it was made with."""

    Env: list[str] | None = None


class _Container(msgspec.Struct):
    """Of what `inspect` tells."""

    Config: _Config


def main(argv: list[str]) -> int:
    """Args: the socket, container ids."""
    try:
        import docker  # noqa: PLC0415  # an extra
        from docker import errors  # noqa: PLC0415  # an extra
    except ImportError:
        return _say(
            Answer(error="the Docker SDK is not installed: pip install 'capture-canary[docker]'")
        )
    socket, *ids = argv
    answer = Answer()
    try:
        client = docker.APIClient(base_url=f"unix://{socket}", timeout=int(DEADLINE / 2))
        for number in ids:
            try:
                found = msgspec.convert(client.inspect_container(number), _Container)
            except errors.NotFound:
                continue
            pairs = [pair.partition("=") for pair in found.Config.Env or []]
            answer.environments[number] = {
                name: value for name, _, value in pairs if name in ALLOWED
            }
    except (errors.DockerException, OSError, ValueError, RecursionError) as error:
        answer.error = f"the Docker Engine at {socket}: {type(error).__name__}: {error}"
    return _say(answer)


def _say(answer: Answer) -> int:
    sys.stdout.buffer.write(msgspec.json.encode(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
