"""Versions out of installed trees, old and new, sound and hostile."""

import os
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capture_canary.model import Fact
from capture_canary.stack.cann import contradictions, find_home, read_stack, read_version
from capture_canary.stack.inside import MAX_BYTES, Root

TOOLKIT = """package_name=Ascend-cann-toolkit
version=8.3.RC2
innerversion=V100R001C23SPC002B210
compatible_version=[V100R001C15],[V100R001C17]
arch=x86_64
"""
PACKAGE = 'Version=9.1.0\nversion_dir=cann\nrequired_package_runtime_version="9.1.0"\ntimestamp=20260728_101112131\n'


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def nowhere(tmp_path):
    return tmp_path / "no" / "driver"


def test_new_layout(tmp_path, nowhere):
    home = tmp_path / "Ascend" / "cann"
    put(home / "aarch64-linux" / "ascend_toolkit_install.info", "version=9.1.0\n")
    for name, version in (("hcomm", "9.0.0"), ("hccl", "9.1.0"), ("runtime", "9.1.0")):
        put(home / "share" / "info" / name / "version.info", PACKAGE.replace("9.1.0", version, 1))
    put(tmp_path / "Ascend" / "driver" / "version.info", "Version=25.5.1\npackage_version=25.5.1\n")
    stack = read_stack(home, driver=nowhere)
    assert {name: fact.value for name, fact in stack.items()} == {
        "cann": "9.1.0",
        "hcomm": "9.0.0",
        "hccl": "9.1.0",
        "runtime": "9.1.0",
        "driver": "25.5.1",
        "firmware": None,
    }
    assert stack["hcomm"].source == str(home / "share/info/hcomm/version.info")


def test_old_layout(tmp_path, nowhere):
    home = tmp_path / "Ascend" / "ascend-toolkit" / "latest"
    put(home / "x86_64-linux" / "ascend_toolkit_install.info", TOOLKIT)
    put(home / "runtime" / "version.info", "Version=8.3.RC2\n")
    put(tmp_path / "Ascend" / "driver" / "version.info", "Version=24.1.rc3\n")
    stack = read_stack(home, driver=nowhere)
    assert (stack["cann"].value, stack["runtime"].value) == ("8.3.RC2", "8.3.RC2")
    assert stack["driver"].value == "24.1.rc3"
    assert stack["hcomm"].value is None
    assert str(home / "share/info/hcomm/version.info: No such file") in stack["hcomm"].source


def test_driver_elsewhere(tmp_path):
    put(tmp_path / "mounted" / "version.info", "Version=25.2.0\n")
    stack = read_stack(tmp_path / "a" / "b", driver=tmp_path / "mounted" / "version.info")
    assert stack["driver"].value == "25.2.0"
    assert stack["driver"].source == str(tmp_path / "mounted" / "version.info")


def test_nothing_there(tmp_path, nowhere):
    stack = read_stack(tmp_path / "none", driver=nowhere)
    assert {fact.value for fact in stack.values()} == {None}
    assert all("No such file" in fact.source for fact in stack.values())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no version here",
        "innerversion=V100R001C23",
        "Version=",
        "Version=9.1.0; rm -rf /",
        "Version=../../etc/passwd",
        "Version=9\x001",
        'Version="9.1.0" <script>',
        "Version=" + "9" * 65,
        "x" * MAX_BYTES + "\nVersion=9.1.0\n",
    ],
)
def test_no_version_where_none_is_sound(tmp_path, text):
    put(tmp_path / "version.info", text)
    assert read_version(tmp_path / "version.info") is None


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Version=9.1.0\r\nx=1", "9.1.0"),
        ('  version = "8.5.0.alpha002" \n', "8.5.0.alpha002"),
        ("VERSION=9.1.0-beta.1", "9.1.0-beta.1"),
        ("\ufeff\nVersion=9.0.0\nVersion=1.0.0\n", "9.0.0"),
    ],
)
def test_spellings(tmp_path, text, version):
    put(tmp_path / "version.info", text)
    assert read_version(tmp_path / "version.info") == version


def test_what_is_no_file_is_not_waited_for(tmp_path, nowhere):
    home = tmp_path / "cann"
    (home / "share" / "info" / "hcomm").mkdir(parents=True)
    os.mkfifo(home / "share" / "info" / "hcomm" / "version.info")
    (home / "share" / "info" / "hccl" / "version.info").mkdir(parents=True)
    (home / "share" / "info" / "runtime").symlink_to("runtime")
    stack = read_stack(home, driver=nowhere)
    assert {fact.value for fact in stack.values()} == {None}
    assert "not a regular file" in stack["hcomm"].source
    assert "not a regular file" in stack["hccl"].source


@given(content=st.binary(max_size=300))
def test_any_bytes_give_a_sound_version_or_none(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.info"
    path.write_bytes(b"Version=" + content)
    found = read_version(path)
    assert found is None or (found.isascii() and found.isprintable() and 0 < len(found) <= 64)


def test_home_is_the_first_named_one_that_holds_a_cann(tmp_path):
    def root(*homes):
        for home in homes:
            put(tmp_path / home[1:] / "share" / "info" / "hcomm" / "version.info", PACKAGE)
        return Root(tmp_path)

    with closing(root()) as nothing:
        assert find_home(nothing, ["/opt/cann", None, ""]) is None
    with closing(root("/usr/local/Ascend/ascend-toolkit/latest")) as old:
        assert str(find_home(old, ["/opt/cann"])) == "/usr/local/Ascend/ascend-toolkit/latest"
    with closing(root("/usr/local/Ascend/cann", "/opt/cann")) as both:
        assert str(find_home(both)) == "/usr/local/Ascend/cann"
        assert str(find_home(both, ["/nowhere", "/opt/cann"])) == "/opt/cann"
        assert str(find_home(both, ["opt/cann"])) == "/usr/local/Ascend/cann"


def test_the_first_of_several_files_counts_and_the_others_are_told(tmp_path, nowhere):
    home = tmp_path / "cann"
    for machine, version in (("aarch64", "9.1.0"), ("x86_64", "8.5.0")):
        put(home / f"{machine}-linux" / "ascend_toolkit_install.info", f"version={version}\n")
    put(home / "share" / "info" / "hccl" / "version.info", "Version=9.1.0\n")
    put(home / "hccl" / "version.info", "Version=9.1.0\n")
    stack = read_stack(home, driver=nowhere)
    other = home / "x86_64-linux" / "ascend_toolkit_install.info"
    assert stack["cann"].value == "9.1.0"
    assert stack["cann"].source.endswith(f"ascend_toolkit_install.info, but {other} says 8.5.0")
    assert stack["hccl"].source == str(home / "share" / "info" / "hccl" / "version.info")
    assert contradictions(stack) == [f"cann: {stack['cann'].source}"]


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ({}, []),
        ({"cann": "9.1.0"}, []),
        ({"hcomm": "9.0.0"}, []),
        ({"cann": None, "hcomm": "9.0.0"}, []),
        ({"cann": "9.1.0", "hcomm": None}, []),
        ({"cann": "9.1.0", "hcomm": "9.1.0"}, []),
        (
            {"cann": "9.1.0", "hcomm": "9.0.0"},
            ["the toolkit is 9.1.0 but hcomm is 9.0.0: hcomm decides"],
        ),
    ],
)
def test_a_toolkit_and_an_hcomm_of_different_versions_are_told(versions, said):
    stack = {name: Fact(value=value, source="a file") for name, value in versions.items()}
    assert contradictions(stack) == said
