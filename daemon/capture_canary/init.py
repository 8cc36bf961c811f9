"""What process 1 of a container owes: it reaps whatever loses its parent, hands signals on, and ends as its child ends.

The kernel gives process 1 no default for any signal and every orphan of the container: a daemon that was process 1
itself would keep the zombies of `docker exec`, and those that a probe's ranks leave.
"""

import os
import signal
import sys

_KERNEL = 0x80
"""si_code of what the kernel sent (<asm-generic/siginfo.h>): a terminal's Ctrl-C reaches our child without us."""
_OURS = (signal.SIGCHLD, signal.SIGKILL, signal.SIGSTOP)
_SIGNALLED = 128
"""A shell's exit code of what a signal ended, less its number."""


def supervise() -> None:
    """Fork and return in the child; the parent does process 1's duty and ends with the child's exit code."""
    every = signal.valid_signals()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, every)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    while True:
        about = signal.sigwaitinfo(every)
        if about.si_signo == signal.SIGCHLD:
            code = _reap(child)
            if code is not None:
                sys.exit(code)
        elif about.si_code != _KERNEL and about.si_signo not in _OURS:
            os.kill(child, about.si_signo)


def _reap(child: int) -> int | None:
    """Reap all that ended; return the child's exit code once it is among them."""
    code: int | None = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == child:
            ended = os.waitstatus_to_exitcode(status)
            code = _SIGNALLED - ended if ended < 0 else ended
