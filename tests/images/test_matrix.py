"""The matrix: what it says, and what it refuses."""

import re

import pytest

from capture_canary.images import matrix
from capture_canary.images.cells import MatrixError, select
from capture_canary.stack import versions

GOOD = """
schema = 1
builder = "python:3.12"
[socs.a3]
family = "a3"
suffix = "-a3"
[systems."ubuntu22.04"]
suffix = ""
[[lines]]
cann = "8.5.0"
base = "quay.io/ascend/cann:8.5.0-{soc}-{os}-py3.11"
python = "3.11"
vllm = { vllm-ascend = "0.13.0", vllm = "0.13.0", torch-npu = "2.8.0", socs = ["a3"] }
[emulated]
system = "debian12"
python = "3.11"
builder = "emulated/debian"
base = "emulated/cann:{cann}-{soc}-{os}"
lines = ["8.5.0"]
socs = ["a3"]
vllm-base = "emulated/vllm:{vllm-ascend}-{soc}-{os}"
vllm = { vllm-ascend = "0.13.0", vllm = "0.13.0", torch-npu = "2.8.0", socs = ["a3"] }
vllm-line = "8.5.0"
"""


def test_every_line_from_8_2_to_9_2_has_every_soc_system_and_flavour_or_says_why_not():
    cells = [cell for cell in matrix.load() if cell.kind == "real"]
    lines = {cell.cann for cell in cells}
    assert {"8.2.RC1", "8.3.RC2", "8.5.0", "9.0.0", "9.1.0-beta.1", "9.1.0", "9.2.0"} <= lines
    assert len(cells) == len(lines) * 4 * 2 * 2
    for cell in cells:
        assert cell.buildable or cell.reason, cell.name
        assert cell.buildable != (cell.status == "unavailable"), cell.name
        if cell.soc in {"310p", "950"}:
            assert cell.status in {"not analysed", "unavailable"}, cell.name
        if cell.flavour == "vllm" and cell.buildable:
            assert cell.vllm_ascend, cell.name
            assert cell.torch_npu, cell.name


def test_names_and_tags_are_unique_and_valid():
    cells = matrix.load()
    assert len({cell.name for cell in cells}) == len(cells)
    for cell in cells:
        assert re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,127}", cell.tag("0.1.0").partition(":")[2])
        assert versions.parse(cell.cann), cell.name
        assert not cell.base or "{" not in cell.base


def test_only_a_release_from_9_1_on_is_expected_to_be_flat_on_a3():
    exposed = {cell.cann: cell.exposure.exposed for cell in select(matrix.load(), socs=["a3"])}
    assert exposed["9.1.0"] is False
    assert exposed["9.2.0"] is False
    assert exposed["9.1.0-beta.3"] is True
    assert exposed["9.0.1"] is True
    assert exposed["8.3.RC2"] is None  # nobody has its sources


def test_emulated_cells_are_a_kind_of_their_own():
    emulated = [cell for cell in matrix.load() if cell.kind == "emulated"]
    assert {"8.5.0", "9.0.0", "9.1.0-beta.1", "9.1.0"} <= {cell.cann for cell in emulated}
    real = {cell.base for cell in matrix.load() if cell.kind == "real"}
    for cell in emulated:
        assert cell.name.startswith("emulated-")
        assert "emulated" in (cell.base or "")
        assert cell.base not in real
        assert cell.status == "emulated"


def test_filters_narrow_and_take_any_spelling_of_a_version():
    found = select(matrix.load(), canns=["8.2.rc1"], socs=["A3"], flavours=["core"])
    assert {cell.name for cell in found} == {
        "8.2.rc1-a3-ubuntu22.04",
        "8.2.rc1-a3-openeuler24.03",
    }


@pytest.mark.parametrize(
    ("filters", "says"),
    [
        ({"canns": ["7.0"]}, "no CANN '7.0' in the matrix: there are 8.2.RC1"),
        ({"socs": ["910c"]}, "no SoC '910c'"),
        ({"systems": ["windows"]}, "no OS 'windows'"),
        ({"names": ["9.9.9-a3-ubuntu22.04"]}, "no cell '9.9.9-a3-ubuntu22.04'"),
        ({"kinds": ["emulated"], "socs": ["950"]}, "no cell of the matrix is kind emulated, SoC 950"),
    ],
)  # fmt: skip
def test_a_cell_that_does_not_exist_is_named(filters, says):
    with pytest.raises(MatrixError, match=re.escape(says)):
        select(matrix.load(), **filters)


def test_a_small_matrix_is_read():
    names = [cell.name for cell in matrix.load(GOOD)]
    assert names == [
        "8.5.0-a3-ubuntu22.04",
        "8.5.0-a3-ubuntu22.04-vllm",
        "emulated-8.5.0-a3-debian12",
        "emulated-8.5.0-a3-debian12-vllm",
    ]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("schema = 1", "schema = 2", "$.schema"),
        ("schema = 1", "schema = 1\nextra = 1", "unknown field `extra`"),
        ('family = "a3"', "family = 3", "$.socs[...].family"),
        ('cann = "8.5.0"', 'cann = "new"', "CANN new: is not a version"),
        ("-{soc}-{os}-py3.11", "-{soc}-py3.11", "no image name with {os}, {soc} in it"),
        ('"quay.io/ascend/cann:8', '"quay io/ascend/cann:8', "no image name"),
        ('python = "3.11"\nvllm', "vllm", "CANN 8.5.0: has a base and no `python`"),
        ('base = "quay', 'unavailable = "gone"\nbase = "quay', "either `base` or `unavailable`"),
        ('torch-npu = "2.8.0", socs = ["a3"]', 'torch-npu = "2.8.0", socs = ["x9"]', "no SoC x9"),
        ('lines = ["8.5.0"]', 'lines = ["8.4.0"]', "there is no line 8.4.0"),
        ("[emulated]", "[emulated", "matrix.toml:"),
    ],
)
def test_a_flaw_is_named_with_its_place(old, new, says):
    assert old in GOOD
    with pytest.raises(MatrixError, match=re.escape(says)):
        matrix.load(GOOD.replace(old, new, 1))
