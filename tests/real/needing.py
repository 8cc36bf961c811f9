"""The environment that a test needs: made in CI, else there, or the test is skipped and says how to make it."""

import os

import pytest

from capture_canary import environments
from capture_canary.environments import Environment


def environment(name: str) -> Environment:
    if os.environ.get("CI") == "true":
        return environments.create(
            environments.recipe(name), environments.default_dir(), None, print
        )
    try:
        return environments.find(name)
    except environments.RecipeError as missing:
        pytest.skip(str(missing))
