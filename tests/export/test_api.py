"""The API: what it answers is what its OpenAPI document says, and nothing else is taken."""

import json
from typing import Any

import jsonschema
import msgspec
import openapi_spec_validator
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.builders import make_report
from tests.export.showing import HOSTILE, NOW, get

from capture_canary.export.api import openapi
from capture_canary.export.api.operations import OPERATIONS
from capture_canary.gate.decide import decide
from capture_canary.gate.model import Rules, Snapshot
from capture_canary.model import VerdictName
from capture_canary.trend.rows import ROWS

DOCUMENT: dict[str, Any] = json.loads(openapi.document("1.2.3"))


def ask(running, path: str) -> Any:
    answer = get(running, f"/api/v1{path}")
    assert answer.headers["content-type"] == "application/json"
    return json.loads(answer.body)


@pytest.fixture
def busy(daemon):
    """A daemon with something of everything."""
    daemon.probed(make_report("healthy", cann="9.1.0"), at=NOW - 3000)
    daemon.probed(make_report("degraded", reason=HOSTILE))
    daemon.store.add_skip("busy", at=NOW, detail=HOSTILE)
    daemon.show(
        decision=decide(Rules(), Snapshot(paused="by a test")), decided_at=NOW, latched="a latch"
    )
    return daemon


def test_the_document_is_openapi_3_1():
    openapi_spec_validator.validate(DOCUMENT)
    assert DOCUMENT["openapi"].startswith("3.1")


def test_the_document_is_served_and_names_every_operation(running):
    served = ask(running, "/openapi.json")
    assert set(served["paths"]) == {f"/api/v1{one.path}" for one in OPERATIONS}
    assert served["components"] == DOCUMENT["components"]


@pytest.mark.parametrize("filled", [False, True], ids=["empty", "filled"])
@pytest.mark.parametrize("path", [one.path for one in OPERATIONS])
def test_every_answer_is_as_documented(running, request, path, filled):
    if filled:
        request.getfixturevalue("busy")
    answer = get(running, f"/api/v1{path.replace('{id}', '1')}")
    assert answer.status == (404 if "{id}" in path and not filled else 200)
    content = DOCUMENT["paths"][f"/api/v1{path}"]["get"]["responses"][str(answer.status)]["content"]
    schema = {**content["application/json"]["schema"], "components": DOCUMENT["components"]}
    jsonschema.validate(json.loads(answer.body), schema)


@pytest.mark.usefixtures("busy")
def test_status_is_the_worst_in_force(running):
    found = ask(running, "/status")
    assert (found["verdict"], found["node"], found["emulated"]) == ("degraded", "node-7", True)
    probe = found["standings"][0]
    assert (probe["evidence"], probe["cause"]) == ("probe", "aicpu_resource_list")
    assert probe["since"] == NOW - 100
    assert "CANN 9.1.0" in probe["remedy"]
    assert found["latched"] == "a latch"


@pytest.mark.parametrize("verdict", ["healthy", "mitigated", "degraded", "unknown"])
def test_nothing_measured_is_unknown_and_never_hides_what_was(
    running, daemon, verdict: VerdictName
):
    assert ask(running, "/status")["verdict"] == "unknown"
    state = msgspec.structs.replace(daemon.view.state, evidence=("trace", "probe", "log"))
    daemon.state(state)
    daemon.probed(make_report(verdict))
    found = ask(running, "/status")
    assert found["verdict"] == verdict
    assert [one["measured"] for one in found["standings"]] == [True, False, False]


def test_a_failed_probe_is_not_hidden_by_a_healthy_trace(running, daemon):
    healthy = daemon.view.state.after(make_report("healthy"), evidence="trace", ended=NOW)
    daemon.state(healthy)
    daemon.probed(make_report("unknown"))
    assert ask(running, "/status")["verdict"] == "unknown"


@pytest.mark.usefixtures("busy")
def test_probes_come_newest_first_and_whole_by_number(running):
    rows = ask(running, "/probes")["probes"]
    assert [row["verdict"] for row in rows] == ["degraded", "healthy"]
    assert {row["report"] for row in rows} == {None}
    whole = ask(running, f"/probes/{rows[0]['id']}")
    assert whole["report"]["series"][0]["captures"][0]["order"] == 1
    assert len(ask(running, "/probes?limit=1")["probes"]) == 1
    assert len(ask(running, f"/probes?since={int(NOW) - 200}")["probes"]) == 1


@pytest.mark.usefixtures("busy")
def test_changes_skips_and_the_gates_answer(running):
    assert [one["verdict"] for one in ask(running, "/changes")["changes"]] == [
        "degraded",
        "healthy",
    ]
    assert ask(running, "/skips")["skips"][0]["detail"] == HOSTILE
    found = ask(running, "/decision")
    assert found["decision"]["reason"] == "paused"
    assert [check["name"] for check in found["decision"]["checks"]][:2] == ["paused", "latch"]


@pytest.mark.usefixtures("busy")
def test_the_explanation_has_every_row_and_every_series(running):
    found = ask(running, "/explain")
    assert found["gate"]["decision"]["reason"] == "paused"
    explained = found["explanations"][0]
    assert [row["row"] for row in explained["rows"]] == [row.__name__ for row in ROWS]
    answers = {row["row"]: row["answer"] for row in explained["rows"]}
    assert (answers["regression"], answers["resource_list"], answers["healthy"]) == (
        False,
        True,
        None,
    )
    assert len(explained["series"]) == len(make_report("degraded").series)
    assert explained["series"][0]["law_slope"] == 256


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/probes?limit=0",
            "/probes?limit=501",
            "/probes?limit=x",
            "/probes?limit=",
            "/probes?since=-1",
        ),
        *(
            "/probes?limit=%D9%A3",
            "/probes/0",
            "/probes/x",
            f"/probes/{2**63}",
            f"/probes/{'9' * 500}",
        ),
    ],
)
def test_a_wrong_parameter_is_named(running, path):
    answer = get(running, f"/api/v1{path}")
    assert answer.status == 400
    name = "id" if path.startswith("/probes/") else path.partition("?")[2].partition("=")[0]
    assert json.loads(answer.body)["error"].startswith(f"{name} is not a whole number from")


def test_a_probe_that_is_not_there(running):
    answer = get(running, f"/api/v1/probes/{2**63 - 1}")
    assert (answer.status, "error" in json.loads(answer.body)) == (404, True)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)
@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=30))
def test_whatever_is_asked_gets_an_answer(running, text):
    for path in (f"/api/v1/{text}", f"/api/v1/probes/{text}", f"/api/v1/probes?limit={text}"):
        assert get(running, path).status in {200, 307, 400, 404}
