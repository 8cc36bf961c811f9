"""Snapshots of whole nodes, each with its right answer (tests/data/nodes.yaml)."""

import pytest
from tests.stack import nodes

TEXTS = {"doubts", "contradictions", "unseen"}


def expected(value, names):
    if isinstance(value, str):
        return value.format(**names) if "{" in value else value
    if isinstance(value, list):
        return [expected(one, names) for one in value]
    return value


def check(wanted, found, where, names):
    """Every word of the answer; texts need only hold what is asked of them, and nothing where "" is asked."""
    for key, value in wanted.items():
        place = f"{where}{key}"
        if isinstance(value, dict):
            check(value, found[key], f"{place}.", names)
        elif key in TEXTS and value:
            assert value in found[key], place
        else:
            assert expected(value, names) == found[key], place


@pytest.mark.parametrize("about", nodes.NODES, ids=lambda about: about["name"])
def test_a_node(about, tmp_path):
    names = {name: nodes.container_id(name) for name in about.get("containers", {})}
    found = nodes.answer(nodes.look(about, tmp_path))
    servers = about["answer"].get("servers", {})
    assert set(servers) == set(found["servers"])
    check(about["answer"], found, "", {**names, "uid": nodes.UID})
    assert "hf_secret" not in str(found)


def test_there_are_enough():
    assert len(nodes.NODES) >= 40
    assert len({about["name"] for about in nodes.NODES}) == len(nodes.NODES)


@pytest.mark.parametrize("about", nodes.NODES[:8], ids=lambda about: about["name"])
def test_without_the_opt_in_nothing_of_another_process_is_read(about, tmp_path):
    found = nodes.look(about, tmp_path, inspect=False)
    for server in found.servers.servers:
        assert set(server.stack) <= {"soc"}
        assert server.mode.source == "unknown"
        assert server.pod is None or server.pod.name is None
    assert any("servers.inspect" in text for text in found.servers.unseen)
