"""The chart's values: what is made from the model is up to date."""

import pytest

from helm import generate


@pytest.mark.parametrize(("path", "text"), generate.files().items(), ids=lambda one: str(one)[-20:])
def test_what_is_made_is_up_to_date(path, text):
    assert text == path.read_text("utf-8"), "run helm/generate.py"
