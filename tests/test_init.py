"""Process 1 of a container: reaps orphans, hands signals on, ends as its child ends."""

import os
import shutil
import subprocess
import sys

import pytest

unshare = shutil.which("unshare")
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or unshare is None, reason="needs root and unshare: a pid namespace"
)
BEGIN = """\
import os, signal, subprocess, sys, time
from capture_canary.init import supervise
assert os.getpid() == 1
supervise()
"""


def run(text):
    """Run Python as process 1 of a pid namespace, forked by `supervise` before the text."""
    return subprocess.run(
        [str(unshare), "--pid", "--fork", "--mount-proc", sys.executable, "-c", BEGIN + text],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_it_ends_with_its_childs_exit_code():
    assert run("assert os.getppid() == 1; sys.exit(7)").returncode == 7


def test_a_child_that_a_signal_ended_is_told_as_shells_tell_it():
    assert run("os.kill(os.getpid(), signal.SIGKILL)").returncode == 128 + 9


def test_an_orphan_is_reaped():
    done = run(
        "orphan = int(subprocess.check_output(['sh', '-c', 'sleep 0.2 >/dev/null & echo $!']))\n"
        "while os.path.exists(f'/proc/{orphan}'): time.sleep(0.02)\n"
        "print('reaped')"
    )
    assert done.stdout == "reaped\n"


@pytest.mark.parametrize("number", ["SIGTERM", "SIGHUP", "SIGUSR1"])
def test_a_signal_to_process_1_reaches_the_child(number):
    done = run(
        f"heard = []\nsignal.signal(signal.{number}, lambda n, _: heard.append(n))\n"
        f"os.kill(1, signal.{number})\n"
        "while not heard: time.sleep(0.02)\n"
        f"print(heard == [signal.{number}])"
    )
    assert done.stdout == "True\n"
