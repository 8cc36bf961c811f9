"""Basic auth: who may read, and that guessing costs us little and nobody else anything."""

import base64
import threading

import bcrypt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.export.showing import get, serving

from capture_canary.export import auth
from capture_canary.export.auth import OPEN_PATHS

USERS = {
    "alice": bcrypt.hashpw(b"secret", bcrypt.gensalt(4)),
    "böb": bcrypt.hashpw("pässwörd: with colon".encode(), bcrypt.gensalt(4)),
}


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


@pytest.fixture
def running(daemon):
    with serving(daemon, users=lambda: USERS) as one:
        yield one


@pytest.fixture
def checks(monkeypatch):
    """Passwords that bcrypt was asked about."""
    found: list[bytes] = []

    def counted(password: bytes, hashed: bytes) -> bool:
        found.append(password)
        return bcrypt.checkpw(password, hashed)

    monkeypatch.setattr(auth, "_matches", counted)
    return found


@pytest.mark.parametrize(
    "path", ["/", "/metrics", "/explain", "/api/v1/status", "/static/status.js"]
)
def test_nothing_is_read_without_a_password(running, path):
    answer = get(running, path)
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Basic ")
    assert answer.body == "unauthorized\n"


@pytest.mark.parametrize(
    ("name", "password"), [("alice", "secret"), ("böb", "pässwörd: with colon")]
)
def test_the_right_password_lets_in(running, name, password):
    assert get(running, "/metrics", Authorization=basic(name, password)).status == 200


@pytest.mark.parametrize(
    "header",
    [
        *(
            basic("alice", "wrong"),
            basic("nobody", "secret"),
            basic("alice", ""),
            basic("", "secret"),
        ),
        *(basic("alice", "secret\0"), basic("alice", "secret").replace("Basic", "Bearer")),
        *("Basic", "Basic !", "Basic YWxpY2U=", "Basic /w==", ""),
    ],
)
def test_anything_else_does_not(running, header):
    assert get(running, "/metrics", Authorization=header).status == 401


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=60))
def test_any_header_is_read_or_refused(header):
    found = auth.credentials(f"Basic {header}")
    assert found is None or isinstance(found[1], bytes)


def test_a_kubelet_needs_no_password(running):
    assert {get(running, path).status for path in OPEN_PATHS} == {200}


def test_a_good_password_is_checked_once(running, checks):
    for _ in range(5):
        assert get(running, "/metrics", Authorization=basic("alice", "secret")).status == 200
    assert checks == [b"secret"]


def test_a_wrong_one_repeated_is_checked_once(running, checks):
    for _ in range(5):
        assert get(running, "/metrics", Authorization=basic("alice", "old")).status == 401
    assert checks == [b"old"]


def test_a_name_that_does_not_exist_costs_as_much_as_one_that_does(running, checks):
    assert get(running, "/metrics", Authorization=basic("nobody", "guess")).status == 401
    assert checks == [b"guess"]


def test_a_changed_hash_ends_what_was_remembered(daemon):
    users = dict(USERS)
    with serving(daemon, users=lambda: users) as running:
        assert get(running, "/", Authorization=basic("alice", "secret")).status == 200
        users["alice"] = bcrypt.hashpw(b"new", bcrypt.gensalt(4))
        assert get(running, "/", Authorization=basic("alice", "secret")).status == 401
        assert get(running, "/", Authorization=basic("alice", "new")).status == 200


def test_a_flood_of_guesses_is_bounded_and_holds_up_nobody_known(daemon, monkeypatch):
    held = threading.Event()
    asked: list[bytes] = []

    def slow(password: bytes, hashed: bytes) -> bool:
        asked.append(password)
        if password != b"secret":
            held.wait(30)
        return bcrypt.checkpw(password, hashed)

    monkeypatch.setattr(auth, "_matches", slow)
    with serving(daemon, users=lambda: USERS) as running:
        assert get(running, "/metrics", Authorization=basic("alice", "secret")).status == 200
        statuses: list[int] = []
        guesses = [
            threading.Thread(
                target=lambda n=n: statuses.append(
                    get(running, "/", Authorization=basic("alice", f"guess{n}")).status
                )
            )
            for n in range(30)
        ]
        for guess in guesses:
            guess.start()
        while len(statuses) < 30 - auth.MAX_WAITING:
            held.wait(0.01)
        assert get(running, "/metrics", Authorization=basic("alice", "secret")).status == 200
        assert set(statuses) == {503}
        assert len(asked) == 2
        held.set()
        for guess in guesses:
            guess.join()
        assert sorted(statuses) == [401] * auth.MAX_WAITING + [503] * (30 - auth.MAX_WAITING)
