"""A node's story by what Prometheus says, which may be anything."""

import http.server
import json
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from capture_canary.cli import main
from capture_canary.report import prometheus

STACK = {"stack": "abc", "instance": "worker-1:9877", "node": "worker-1"}
Answer = Callable[[str], bytes]


def series(name: str, value: object, **labels: str) -> dict[str, Any]:
    metric = {"__name__": f"capture_canary_{name}", **STACK, **labels}
    return {"metric": metric, "value": [1_700_000_000.0, str(value)]}


DEGRADED = [
    series("build_info", 1, version="1", emulated="false"),
    series("stack_info", 1, cann="8.5.0", hcomm="8.5.0", soc="a3"),
    series("verdict", 1, evidence="probe", verdict="degraded"),
    series("verdict", 0, evidence="probe", verdict="healthy"),
    series("verdict_info", 1, evidence="probe", cause="aicpu_resource_list"),
    series("rtmemcpy_growth", 256, evidence="probe", arm="as_configured"),
    series("load_impact_seconds", 12.5),
    series("mitigation", 0, mode="AI_CPU", source="trace"),
]


def vector(result: object) -> bytes:
    return json.dumps(
        {"status": "success", "data": {"resultType": "vector", "result": result}}
    ).encode()


class Pretended(http.server.ThreadingHTTPServer):
    """Answers queries with what a test says."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.queries: list[str] = []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Pretended)
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)["query"][0]
        self.server.queries.append(query)
        body = self.server.answer(query)
        self.send_response(302 if body == b"elsewhere" else 200)
        if body == b"elsewhere":
            self.send_header("Location", "http://169.254.169.254/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Keep quiet."""


@pytest.fixture
def pretend() -> Iterator[Callable[[Answer], Pretended]]:
    held: list[Pretended] = []

    def begin(answer: Answer) -> Pretended:
        server = Pretended(answer)
        held.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    yield begin
    for server in held:
        server.shutdown()
        server.server_close()


def by_query(found: list[dict[str, Any]]) -> Answer:
    return lambda query: vector(found if "__name__" in query else [])


def test_it_says_what_the_node_would_say(pretend: Any, capsys: pytest.CaptureFixture[str]):
    server = pretend(by_query(DEGRADED))
    code = main(["story", "worker-1", "--prometheus", server.url])
    out = capsys.readouterr().out
    assert 1 == code
    assert len(out.splitlines()) <= 20
    for words in (
        "worker-1, ",
        "DEGRADED, aicpu_resource_list",
        "CANN 8.5.0",
        "256 more H2D copies",
        "12.5 s in each load",
        "whoever builds the serving image",
    ):
        assert words in out


def test_an_emulated_node_says_so(pretend: Any, capsys: pytest.CaptureFixture[str]):
    found = [series("build_info", 1, emulated="true"), *DEGRADED[1:]]
    main(["story", "worker-1", "--prometheus", pretend(by_query(found)).url])
    assert "EMULATED" in capsys.readouterr().out


def test_a_node_that_nobody_knows_is_no_healthy_one(pretend: Any, capsys: Any):
    code = main(["story", "worker-9", "--prometheus", pretend(by_query([])).url])
    assert 2 == code
    assert "no series of worker-9" in capsys.readouterr().err


@pytest.mark.parametrize("node", ['a"} or vector(1)', "a b", "", "x" * 300, "a\n"])
def test_a_name_is_no_query(pretend: Any, node: str):
    server = pretend(by_query(DEGRADED))
    assert 2 == main(["story", node or " ", "--prometheus", server.url])
    assert [] == server.queries


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://x",
        "http://",
        "http://u:p@x",
        "http://x?y",
        "http://x:99999",
        "x:9090",
    ],
)
def test_only_an_address_is_asked(url: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main(["story", "worker-1", "--prometheus", url])
    assert 2 == ended.value.code
    assert "--prometheus" in capsys.readouterr().err


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"<html>",
        b"\xff\xfe",
        b'{"data": {"result": [{"metric": 1}]}}',
        b"elsewhere",
        b" " * (5 << 20),
    ],
    ids=["empty", "null", "list", "object", "page", "bytes", "types", "redirect", "huge"],
)
def test_what_is_no_answer_is_said(pretend: Any, body: bytes, capsys: Any):
    assert 2 == main(["story", "worker-1", "--prometheus", pretend(lambda _query: body).url])
    assert "Prometheus at" in capsys.readouterr().err


def test_a_page_that_drips_is_ended(pretend: Any, monkeypatch: Any, capsys: Any):
    monkeypatch.setattr(prometheus, "DEADLINE", 0.3)
    hold = threading.Event()

    def wait(_query: str) -> bytes:
        hold.wait(30)
        return b""

    assert 2 == main(["story", "worker-1", "--prometheus", pretend(wait).url])
    hold.set()
    assert "Prometheus at" in capsys.readouterr().err


def test_forged_values_do_no_harm(pretend: Any, capsys: pytest.CaptureFixture[str]):
    forged = [
        series("verdict", 1, evidence="probe", verdict="splendid"),
        series("verdict", 1, evidence="\x1b[2J", verdict="healthy"),
        series("verdict", "NaN", evidence="probe", verdict="healthy"),
        series("verdict", 1, evidence="probe", verdict="degraded"),
        series("verdict_info", 1, evidence="probe", cause="\x1b[31m" + "x" * 5000),
        series("stack_info", 1, cann="\x1b]0;x\x07" + "9" * 5000),
        series("load_impact_seconds", "1e999"),
        series("probe_last_run_timestamp_seconds", "-1e300"),
    ]
    code = main(["story", "worker-1", "--prometheus", pretend(by_query(forged)).url])
    out = capsys.readouterr().out
    assert code in (1, 3)
    assert "\x1b" not in out
    assert len(out) < 4000


def test_a_node_alone_is_not_enough(capsys: pytest.CaptureFixture[str]):
    assert 2 == main(["story", "worker-1"])
    assert "go together" in capsys.readouterr().err
