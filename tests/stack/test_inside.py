"""Reading below a root that somebody else fills: never out of it, never without end."""

import os
import threading
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capture_canary.stack.inside import Root

SECRET = b"the host's"


@pytest.fixture
def tree(tmp_path):
    """A root with the host's secret beside it."""
    root = tmp_path / "root"
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "file").write_bytes(b"inside")
    (tmp_path / "secret").write_bytes(SECRET)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "secret").write_bytes(SECRET)
    return root


def read(root, path):
    with closing(Root(root)) as opened:
        return opened.read(path)


@pytest.mark.parametrize(
    ("link", "target", "path"),
    [
        ("x", "a/b/file", "x"),
        ("x", "/a/b/file", "/x"),
        ("x", "./a//b/./file", "x"),
        ("x", "../../../a/b/file", "x"),
        ("a/x", "../a/b", "a/x/file"),
        ("a/x", "/a", "a/x/b/file"),
        ("a/x", "..", "a/x/a/b/file"),
    ],
)
def test_links_are_followed_as_the_container_would(tree, link, target, path):
    (tree / link).symlink_to(target)
    assert read(tree, path) == b"inside"


@pytest.mark.parametrize(
    "target", ["../secret", "/../secret", "../folder", "/proc/self/root", "../../..", "..//secret"]
)
def test_nothing_leads_out(tree, target):
    (tree / "x").symlink_to(target)
    for path in ("x", "x/secret", f"x{tree.parent}/secret", "../secret", "a/../../secret"):
        with pytest.raises(OSError, match=r"No such file|regular|Not a directory"):
            read(tree, path)


def test_an_absolute_link_to_the_host_is_the_containers_own(tree):
    (tree / "x").symlink_to(tree.parent / "secret")
    with pytest.raises(FileNotFoundError):
        read(tree, "x")
    own = tree / str(tree.parent / "secret").lstrip("/")
    own.parent.mkdir(parents=True)
    own.write_bytes(b"its own")
    assert read(tree, "x") == b"its own"


def test_loops_end(tree):
    (tree / "x").symlink_to("x")
    (tree / "y").symlink_to("/".join(["y/y"] * 200))
    for name in "xy":
        with pytest.raises(OSError, match="too many links"):
            read(tree, name)
    with pytest.raises(OSError, match="too long"):
        read(tree, "a/" * 5000)
    with pytest.raises(OSError, match="or none"):
        read(tree, "a\0b")


def test_what_is_no_file_is_neither_opened_nor_waited_for(tree):
    os.mkfifo(tree / "fifo")
    (tree / "null").symlink_to("/dev/null")
    for name in ("fifo", "a", "."):
        with pytest.raises(OSError, match="regular"):
            read(tree, name)
    with closing(Root("/")) as root, pytest.raises(OSError, match="regular"):
        root.read("/dev/null")


def test_files_and_folders_are_read_up_to_a_bound(tree):
    (tree / "big").write_bytes(b"x" * 100_000)
    with closing(Root(tree)) as root:
        assert len(root.read("big", 70_000)) == 70_000
        assert root.list("a") == ["b"]
        for n in range(5000):
            (tree / "a" / f"{n}").touch()
        assert len(root.list("a")) == 4096
        with pytest.raises(OSError, match="Not a directory"):
            root.list("big")


def test_no_descriptor_is_left_open(tree):
    (tree / "x").symlink_to("/a/b/../b/file")
    (tree / "loop").symlink_to("loop")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in ("x", "loop", "missing", "a/b/file/more", "a"):
        with suppress(OSError):
            read(tree, path)
    assert before == len(list(Path("/proc/self/fd").iterdir()))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    links=st.dictionaries(
        st.sampled_from(["l1", "l2", "a/l3", "a/b/l4"]),
        st.lists(
            st.sampled_from(["..", ".", "", "a", "b", "l1", "l2", "l3", "l4", "file", "secret"]),
            max_size=12,
        )
        .map("/".join)
        .filter(bool),
        max_size=4,
    ),
    path=st.lists(
        st.sampled_from(["..", "a", "b", "l1", "l2", "l3", "l4", "file", "secret", "folder"]),
        min_size=1,
        max_size=10,
    ).map("/".join),
)
def test_no_net_of_links_leads_to_the_hosts_file(tree, links, path):
    for name, target in links.items():
        (tree / name).symlink_to(target)
    with suppress(OSError):
        assert read(tree, path) != SECRET
    for name in links:
        (tree / name).unlink()


def test_a_race_of_renames_never_leads_out(tree):
    """Another thread swaps a folder for a link to the host's, as fast as it can."""
    (tree / "good").mkdir()
    (tree / "good" / "secret").write_bytes(b"its own")
    (tree / "evil").symlink_to(tree.parent / "folder")
    (tree / "evil2").symlink_to("../folder")
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            for evil in ("evil", "evil2"):
                (tree / "good").rename(tree / "x")
                (tree / evil).rename(tree / "good")
                (tree / "good").rename(tree / evil)
                (tree / "x").rename(tree / "good")

    thread = threading.Thread(target=swap)
    thread.start()
    seen = set()
    try:
        for _ in range(2000):
            try:
                seen.add(read(tree, "good/secret"))
            except OSError:
                seen.add(None)
    finally:
        stop.set()
        thread.join()
    assert SECRET not in seen
    assert seen <= {None, b"its own"}
