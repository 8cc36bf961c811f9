"""The API of a real daemon against its own document: schemathesis asks what that declares, and what not.

Data that fits and data that does not, every method, and numbers of probes that an earlier answer gave.
"""

import base64
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.export.showing import get
from tests.export.test_webconfig import HASH
from tests.running import Running, until

from capture_canary.export.api import openapi
from capture_canary.export.api.operations import OPERATIONS

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
EXAMPLES = "12"
"""For each operation and phase: thirty found nothing more."""


@pytest.fixture(scope="module", params=[False, True], ids=["open", "guarded"])
def daemon(request, tmp_path_factory) -> Iterator[tuple[Running, bool]]:
    """One with a history; one that asks for a password."""
    folder = tmp_path_factory.mktemp("daemon")
    web = folder / "web.yml"
    web.write_text(f"basic_auth_users:\n  alice: {HASH}\n" if request.param else "")
    running = Running(
        folder,
        f"web.config_file={web}",
        environ={"CAPTURE_CANARY_EMULATE_NODE": str(folder / "node")},
    )
    try:
        until(lambda: "probe_ended" in running.log.read_text())
        yield running, request.param
        assert running.end() == 0
        assert "Traceback" not in running.log.read_text()
    finally:
        running.process.kill()
        running.process.wait()


def schemathesis(
    running: Running, document: str, checks: str, *headers: str
) -> subprocess.CompletedProcess[str]:
    url = f"http://127.0.0.1:{running.port}"
    options = [part for header in headers for part in ("--header", header)]
    return subprocess.run(
        [
            *(SCHEMATHESIS, "run", document, "--url", url, "--no-color", "--seed", "9"),
            *("--mode", "all", "--checks", checks, "--max-examples", EXAMPLES),
            *("--phases", "examples,coverage,fuzzing,stateful", *options),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=580,
        cwd=running.folder,
    )


def passed(done: subprocess.CompletedProcess[str]) -> int:
    """How many cases passed, which is all of them, of all operations."""
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert f"Tested: {len(OPERATIONS)}" in done.stdout
    cases = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
    assert cases is not None
    assert cases[1] == cases[2]
    return int(cases[1])


def basic(password: str) -> str:
    return "Authorization: Basic " + base64.b64encode(f"alice:{password}".encode()).decode()


def test_the_api_does_what_its_document_says(daemon):
    running, guarded = daemon
    url = f"http://127.0.0.1:{running.port}/api/v1/openapi.json"
    assert passed(schemathesis(running, url, "all", *([basic("secret")] if guarded else []))) > 100


def test_without_the_password_it_is_no_other(tmp_path: Path, daemon):
    running, guarded = daemon
    document = tmp_path / "openapi.json"
    document.write_bytes(openapi.document("1"))
    forms = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
    assert passed(schemathesis(running, str(document), forms, basic("guess"))) > 100
    assert get(running, "/api/v1/status", Authorization=basic("guess")[15:]).status == (
        401 if guarded else 200
    )
