import signal

import pytest

from tests.emulator.child import emulated, isolated, start

COPIES = """
from tests.emulator.child import Acl
acl = Acl()
memory = acl.malloc(64)
print([acl.write(memory, b"x") for _ in range(4)], flush=True)
"""


def _run(tmp_path, fault: str, code: str = COPIES, **extra: str):
    child = start(code, emulated(tmp_path, "", fault, extra))
    output, errors = child.communicate(timeout=60)
    return child.returncode, output.strip(), errors


@pytest.mark.parametrize(
    ("fault", "codes"),
    [
        ("", "[0, 0, 0, 0]"),
        ("fail:aclrtMemcpy:3:507899", "[0, 0, 507899, 0]"),
        ("fail:aclrtMemcpy:1:1;fail:aclrtMemcpy:3:2;", "[1, 0, 2, 0]"),
        ("fail:aclrtMemcpyAsync:1:507899", "[0, 0, 0, 0]"),
        ("fail:aclrtMemcpy:2:7@1", "[0, 7, 0, 0]"),
        ("fail:aclrtMemcpy:2:7@0", "[0, 0, 0, 0]"),
    ],
)
def test_a_call_fails_by_number_and_rank(tmp_path, fault, codes):
    assert _run(tmp_path, fault, RANK="1")[:2] == (0, codes)


def test_a_rank_that_hccl_knows_counts_before_the_environment(tmp_path):
    code = COPIES.replace("memory =", "acl.library.emuRankSet(2)\nmemory =")
    assert _run(tmp_path, "fail:aclrtMemcpy:1:7@2", code, RANK="1")[:2] == (0, "[7, 0, 0, 0]")
    assert _run(tmp_path, "fail:aclrtMemcpy:1:7@1", code, RANK="1")[:2] == (0, "[0, 0, 0, 0]")


def test_a_process_dies_as_if_killed(tmp_path):
    assert _run(tmp_path, "die:aclrtMemcpy:2")[:2] == (-signal.SIGKILL, "")


def test_a_call_hangs_until_its_process_is_ended(tmp_path):
    code = COPIES.replace("print(", "print('ready', flush=True)\nprint(")
    child = start(code, emulated(tmp_path, "", "hang:aclrtMemcpy:2"))
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    with pytest.raises(TimeoutError):
        _wait_for_line(child)
    child.terminate()
    output, _ = child.communicate(timeout=60)
    assert (child.returncode, output) == (-signal.SIGTERM, "")


def _wait_for_line(child) -> None:
    import select  # noqa: PLC0415  # one use

    readable, _, _ = select.select([child.stdout], [], [], 0.3)
    if not readable:
        raise TimeoutError


@isolated(fault="slow:aclrtMemcpy:40")
def test_a_slow_call_takes_at_least_its_time() -> None:
    import time  # noqa: PLC0415  # children pay for what a module imports

    from tests.emulator.child import Acl  # noqa: PLC0415  # the same

    acl = Acl()
    memory = acl.malloc(64)
    begin = time.monotonic()
    assert [acl.write(memory, b"x") for _ in range(3)] == [0, 0, 0]
    assert time.monotonic() - begin >= 0.12


@pytest.mark.parametrize(
    "fault",
    [
        "fail:aclrtMemcpy:1",
        "fail:aclrtMemcpy:0:5",
        "fail:aclrtMemcpy:1:0",
        "fail:aclrtMemcpy:1:-5",
        "fail:aclrtMemcpy:1:5:6",
        "fail:memcpy:1:5",
        "fail:aclrt-Memcpy:1:5",
        "fail::1:5",
        "hang:aclrtMemcpy:1:5",
        "hang:aclrtMemcpy",
        "slow:aclrtMemcpy:fast",
        "die:aclrtMemcpy:1@",
        "die:aclrtMemcpy:1@x",
        "explode:aclrtMemcpy:1",
        "hang:aclrtMemcpy:99999999999999999999",
        "die:" + "acl" * 40 + ":1",
        "nonsense",
    ],
)
def test_a_bad_fault_ends_the_process_and_is_named(tmp_path, fault):
    code, _, errors = _run(tmp_path, f"slow:aclrtFree:1;{fault}")
    assert code == 2
    assert f'CAPTURE_CANARY_EMULATE_FAULT: "{fault}" is not' in errors


def test_too_many_faults_end_the_process(tmp_path):
    code, _, errors = _run(tmp_path, ";".join(["slow:aclrtFree:1"] * 33))
    assert (code, "more than 32" in errors) == (2, True)
    code, _, errors = _run(tmp_path, "x" * 3000)
    assert (code, "longer than 2047" in errors) == (2, True)
