"""Each kind of call that the C parts make fails once, and from then on. bench/failing.py lets every single one fail."""

import re
import subprocess
from pathlib import Path

import pytest

from capture_canary.native import emulated_cann_dir, tracer_path
from tests.failing.emulator import ROOT, Neighbour, run, shown_wrong
from tests.failing.layer import (
    C,
    Failure,
    compile_c,
    first_of_each,
    functions,
    variants,
)
from tests.failing.traced import SAME, Traced
from tests.tracer.building import WAYS

CANNOT_FAIL = re.compile(
    r"_ITM_\w+|__cxa_finalize|__gmon_start__|__errno_location|__tls_get_addr|__ctype_b_loc|__libc_start_main"
    r"|(mem|str)(?!dup)\w+|tfind|twalk|tdelete|free|std(out|err)|inet_ntop|__isoc99_sscanf"
    r"|clock_gettime|get(e?uid|pid|env)|secure_getenv|sysconf|sched_yield|_exit|kill|pause|nanosleep"
    r"|pthread_(once|join|sigmask|(mutex|rwlock|cond)_\w+|(cond)?attr_\w+)|sigfillset"  # with what they are given
    r"|v?snprintf|f?printf|puts|fputc|fwrite|fflush|[fp]error"  # files: of what is printed, test_a_full_disk
    r"|dl(close|error|vsym|_iterate_phdr)"  # of what is loaded, which wants no memory
    r"|(acl|Hccl|rt|emu|hrt|mstx)\w+"  # ours
)


def imports(library):
    command = ["nm", "-D", "--undefined-only", library]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return {line.split()[-1].partition("@")[0] for line in done.stdout.splitlines()}


def test_every_call_that_can_fail_is_one_that_we_let_fail(builds):
    known = set(functions(builds.layer))
    cann = emulated_cann_dir()
    libraries = [tracer_path(), *cann.glob("lib64*/*.so"), cann / "bin" / "npu-smi"]
    unknown = {name for library in libraries for name in imports(library)} - known
    assert {name for name in unknown if not CANNOT_FAIL.fullmatch(name)} == set()


def test_every_raw_system_call_is_one_that_we_let_fail():
    made = {
        name
        for source in (ROOT / "daemon").rglob("*.c")
        for name in re.findall(r"\bSYS_(\w+)", source.read_text())
    }
    failing = set(re.findall(r"{SYS_(\w+), ", (C / "failing.c").read_text()))
    assert made - failing == {"getpid", "gettid"}


def test_the_layer_lets_fail_what_it_is_told_to(builds, tmp_path):
    """Or all that follows would hold of nothing."""
    bench = builds.bench("device")
    calls = bench.calls(tmp_path)
    taken = next(call for call in calls if call.function == "mmap")
    ended = bench.run(tmp_path / "once", taken)
    assert ended.told.split()[:2] == ["mmap", taken.site]
    assert ended.output == "507033 aclrtSetDevice(0)\n"


@pytest.mark.parametrize("client", ["device", "operators"])
def test_a_failing_call_ends_in_a_code(builds, tmp_path, client):
    bench = builds.bench(client)
    for failure in first_of_each(bench.calls(tmp_path / "all")):
        assert run(bench, tmp_path / "run", failure) == "", failure


WITHOUT_WAITING = ("realloc", "strdup", "getrandom", "memfd_create", "mmap", "accept4", "recvmsg")
"""What one rank can fail at without the other's waiting for it until a time-out."""


def test_a_failing_call_of_a_rank_ends_in_a_code_for_both(builds, tmp_path):
    bench = builds.bench("ranks")
    calls = first_of_each(bench.calls(tmp_path / "all"))
    for failure in calls:
        if failure.function in WITHOUT_WAITING and failure.site.startswith("libhcomm"):
            assert run(bench, tmp_path / "run", failure) == "", failure


def test_a_neighbour_on_the_node_loses_nothing(builds, tmp_path):
    """A process that cannot look at another one, for want of a descriptor, must not take it for dead."""
    neighbour = Neighbour(builds.bench("device"), tmp_path)
    try:
        assert int(neighbour.first) > 1 << 20
        calls = first_of_each(neighbour.bench.calls(tmp_path / "all"))
        for failure in variants([call for call in calls if call.function in {"open", "read"}]):
            assert run(neighbour.bench, tmp_path / "run", failure) == "", failure
            assert neighbour.robbed() == "", failure
    finally:
        neighbour.close()


def test_npu_smi_shows_all_or_says_why_not(builds, tmp_path):
    neighbour = Neighbour(builds.bench("device"), tmp_path)
    try:
        bench = builds.npu_smi(neighbour.node)
        plain = bench.run(tmp_path / "plain").output
        assert f"{neighbour.process.pid}" in plain
        for failure in variants(bench.calls(tmp_path / "all")):
            if failure.function in {
                "fopen",
                "fgets",
            }:  # a process's name, which is nobody's promise
                continue
            assert shown_wrong(bench, tmp_path / "run", plain, failure) == "", failure
            assert neighbour.robbed() == "", failure
    finally:
        neighbour.close()


def test_a_full_disk_is_told_of(builds, tmp_path):
    """What is printed goes through buffers: that it did not arrive shows at their end."""
    bench = builds.npu_smi(tmp_path / "node")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            bench.command, env=dict(bench.environ), check=False, stdout=full, stderr=subprocess.PIPE
        )
    assert (done.returncode, b"No space left" in done.stderr) == (1, True)


@pytest.mark.parametrize("way", WAYS)
def test_a_traced_process_is_as_untraced(builds, clients, tmp_path, way):
    traced = Traced.build(clients, builds.layer, way, tmp_path)
    assert traced.untraced(tmp_path / "untraced").output == SAME
    calls = first_of_each(traced.bench.calls(tmp_path / "all"))
    for failure in variants(calls) if way == "local" else calls:
        assert traced.run(tmp_path / "run", failure) == "", failure


def test_a_mark_that_was_half_written_warns_of_nothing(builds, clients, tmp_path):
    """The breaker counts deaths: bytes that a full disk cut short are none."""
    traced = Traced.build(clients, builds.layer, "linked", tmp_path)
    calls = traced.bench.calls(tmp_path / "all")
    mark = next(call for call in calls if call.function == "pwrite64")
    for mode in ("short", "from"):
        failure = Failure(mark.function, mark.site, mark.number, mode)
        assert traced.run(tmp_path / "run", failure) == ""
        assert not list(traced.traces.glob("armed-*"))


def test_the_clients_notice_a_broken_promise(tmp_path):
    """What leaves a descriptor open, or a thread, is told of."""
    source = tmp_path / "broken.c"
    source.write_text(
        f'#include "{C / "promise.h"}"\n'
        'static outcome work(void) { (void)!open("/", O_RDONLY); return (outcome){0, NULL}; }\n'
        "int main(void) { return keepsItsPromise(work, 1); }\n"
    )
    program = compile_c(tmp_path / "broken", str(source), "-ldl")
    environ = {"CAPTURE_CANARY_EMULATE_NODE": str(tmp_path / "node")}
    done = subprocess.run(
        [program], env=environ, check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 3
    assert "broken promise: later: 1 threads (1 before)" in done.stderr
