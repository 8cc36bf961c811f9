"""Foreign JSON is a value of its kind or a ValueError, wherever we read some."""

import re
from pathlib import Path

import msgspec
import pytest

from capture_canary import foreign

PACKAGE = Path(foreign.__file__).parent
OWN = {"foreign.py", "images/build_child.py"}
"""The latter reads what its own parent writes."""


class Kind(msgspec.Struct):
    number: int = 0


DECODER = msgspec.json.Decoder(Kind)


@pytest.mark.parametrize("kind", [Kind, DECODER], ids=["type", "decoder"])
@pytest.mark.parametrize(
    "data", [b"", b"{", b'{"number":"x"}', b'{"x":"\xff', b'{"x":' + b"[" * 100_000, b"\xff"]
)
def test_anything_else_is_a_value_error(kind, data):
    with pytest.raises(ValueError, match=r".") as error:
        foreign.decode(data, kind)
    assert len(str(error.value)) < 200


def test_a_value():
    assert foreign.decode(b'{"number":7,"x":[[]]}', Kind) == foreign.decode('{"number":7}', DECODER)


def test_nobody_decodes_on_their_own():
    direct = re.compile(
        r"msgspec\.json\.decode\(|json\.loads\(|_(records|spec|events|header)\.decode\("
    )
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if direct.search(path.read_text("utf-8"))
    }
    assert found <= OWN
