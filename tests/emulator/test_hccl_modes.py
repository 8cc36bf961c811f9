"""The expansion modes: which engine runs what, by SoC; exact parsing; what overrides what."""

from typing import Any

import pytest

from tests.emulator.conftest import Run
from tests.emulator.hccl_client import E_NOT_SUPPORT, E_PARA
from tests.emulator.hccl_failures import join_only, only_aiv
from tests.emulator.hccl_growth import engines, growth

SMALL = ("AllReduce", "AllGather", "AlltoAll")
ALL = {*SMALL, "large AllReduce", "product"}
GATHERS = {"AllGather", "AlltoAll"}
FALLS_BACK = {"large AllReduce", "product"}


def grows(run: Run, counter: str, emulate: str, env: dict[str, str], **options: Any) -> set[str]:
    answers = run(
        engines,
        2,
        threads=True,
        env={"LD_PRELOAD": counter, "CAPTURE_CANARY_EMULATE": emulate, **env},
        options=options,
    )
    assert "code" not in answers[0], answers[0]
    return {name for name, grew in answers[0].items() if grew}


@pytest.mark.parametrize(
    ("soc", "mode", "grown"),
    [
        ("a3", None, ALL),
        ("a3", "AI_CPU", ALL),
        ("a3", "AICPU_CacheDisable", ALL),
        ("a3", "AIV", FALLS_BACK),
        ("a3", "HOST", set()),
        ("a3", "HOST_TS", ALL),  # A2's: the default stays
        ("a3", "CCU_SCHED", ALL),  # 950's
        ("a3", "AICPU_TS", ALL),
        ("a2", None, set()),
        ("a2", "HOST", set()),
        ("a2", "HOST_TS", set()),
        ("a2", "AI_CPU", GATHERS),
        ("a2", "AIV", set()),
        ("a2", "AICPU_CacheDisable", set()),
        ("950", None, set()),
        ("950", "AICPU_TS", set()),
        ("950", "CCU_MS", set()),
    ],
)
def test_which_collectives_grow(
    run: Run, counter: str, soc: str, mode: str | None, grown: set[str]
) -> None:
    env = {} if mode is None else {"HCCL_OP_EXPANSION_MODE": mode}
    assert grows(run, counter, f"cann=8.5.0,soc={soc}", env) == grown


@pytest.mark.parametrize(
    ("cann", "grown"),
    [
        ("9.0.0", ALL),
        ("9.1.0-beta.1", ALL),
        ("8.5.0,hcomm=9.1.0-pr2405", GATHERS),  # graphs kept: AllGather's tags are new each time
        ("9.1.0", set()),
        ("9.2.0", set()),
    ],
)
def test_growth_follows_hcomm(run: Run, counter: str, cann: str, grown: set[str]) -> None:
    assert grows(run, counter, f"cann={cann},soc=a3", {}, fixed=True) == grown


@pytest.mark.parametrize(
    ("environment", "config", "grown"),
    [
        (None, 0, ALL),
        ("AIV", 0, FALLS_BACK),
        ("AIV", 2, ALL),
        (None, 1, set()),
        (None, 3, FALLS_BACK),
        ("HOST", 3, FALLS_BACK),
        ("HOST", 6, set()),  # of 950: a warning, the environment's mode stays
    ],
)
def test_the_communicators_config_overrides(
    run: Run, counter: str, environment: str | None, config: int, grown: set[str]
) -> None:
    env = {} if environment is None else {"HCCL_OP_EXPANSION_MODE": environment}
    got = grows(run, counter, "cann=8.5.0,soc=a3", env, config={"expansion_mode": config})
    assert got == grown


def test_a_config_older_than_the_expansion_mode_does_not_set_it(run: Run, counter: str) -> None:
    config = {"version": 3, "expansion_mode": 1}
    assert grows(run, counter, "cann=8.5.0,soc=a3", {}, config=config) == ALL


def test_zero_copy_for_reductions_gives_each_a_tag(run: Run, counter: str) -> None:
    env = {"LD_PRELOAD": counter, "CAPTURE_CANARY_EMULATE": "cann=9.1.0,soc=a3"}
    options = {"op": "AllReduce", "k": 3, "captures": 3, "config": {"zero_copy": 1}}
    copies = [point[0] for point in run(growth, 2, threads=True, env=env, options=options)[0]]
    assert copies[2:] == [3 * 7, 3 * 7]


@pytest.mark.parametrize("setting", ["true", "strict"])
def test_determinism_takes_priority_over_aiv(run: Run, counter: str, setting: str) -> None:
    env = {"HCCL_OP_EXPANSION_MODE": "AIV", "HCCL_DETERMINISTIC": setting}
    assert grows(run, counter, "cann=8.5.0,soc=a3", env) == ALL


def test_only_aiv_fails_where_it_cannot(run: Run) -> None:
    for answer in run(only_aiv, 2):
        assert answer["code"] == E_NOT_SUPPORT
        assert "AIV" in answer["message"]


@pytest.mark.parametrize("value", ["aiv", "AIV ", " AIV", "AI-CPU", "aicpu", "HOST,AIV", "0"])
def test_an_unknown_mode_fails_initialisation(run: Run, value: str) -> None:
    (answer,) = run(join_only, 1, env={"HCCL_OP_EXPANSION_MODE": value})
    assert (answer["function"], answer["code"]) == ("HcclGetRootInfo", E_PARA)
    assert f"[{value}]" in answer["message"]
    assert "HCCL_OP_EXPANSION_MODE" in answer["message"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HCCL_BUFFSIZE", "0"),
        ("HCCL_BUFFSIZE", "-1"),
        ("HCCL_BUFFSIZE", "200MB"),
        ("HCCL_CONNECT_TIMEOUT", "7201"),
        ("HCCL_CONNECT_TIMEOUT", "1.5"),
        ("HCCL_EXEC_TIMEOUT", "99999999999999999999"),
        ("HCCL_IF_BASE_PORT", "1023"),
        ("HCCL_DETERMINISTIC", "yes"),
        ("HCCL_HOST_SOCKET_PORT_RANGE", "60000-"),
        ("HCCL_HOST_SOCKET_PORT_RANGE", "60100-60000"),
        ("HCCL_HOST_SOCKET_PORT_RANGE", "AUTO"),
        ("HCCL_HOST_SOCKET_PORT_RANGE", "60000,,60001"),
        ("HCCL_NPU_SOCKET_PORT_RANGE", "1,2"),
        ("HCCL_NPU_SOCKET_PORT_RANGE", ",".join(["60000"] * 17)),
        ("HCCL_NPU_SOCKET_PORT_RANGE", "6" * 600),
    ],
)
def test_a_malformed_variable_is_named(run: Run, name: str, value: str) -> None:
    (answer,) = run(join_only, 1, env={name: value})
    assert answer["code"] == E_PARA
    assert name in answer["message"]


@pytest.mark.parametrize(
    "config", [{"magic": 1}, {"size": 8}, {"buffer_size": 0}, {"zero_copy": 2}]
)
def test_a_malformed_config_is_refused(run: Run, config: dict[str, int]) -> None:
    (answer,) = run(join_only, 1, options={"config": config})
    assert answer["code"] == E_PARA


def test_a_config_names_the_communicator(run: Run) -> None:
    for answer in run(join_only, 2, options={"config": {"name": "tp_group"}}):
        assert answer["name"] == "tp_group"


def test_a_config_from_the_future_is_read_as_far_as_known(run: Run) -> None:
    config = {"version": 99, "size": 100_000, "name": "later"}
    assert run(join_only, 1, options={"config": config})[0]["name"] == "later"
