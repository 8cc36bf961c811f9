"""Python environments with a real torch-npu on the emulated CANN: what there is, making one, using one.

pip finds no resolution for older torch-npu and for vLLM, so each environment has all its pins in `requirements/`.
"""

from capture_canary.environments.create import CreateError, create, find
from capture_canary.environments.elf import ToolMissingError
from capture_canary.environments.layout import Environment
from capture_canary.environments.recipes import RecipeError, default_dir, names, recipe

__all__ = [
    "CreateError",
    "Environment",
    "RecipeError",
    "ToolMissingError",
    "create",
    "default_dir",
    "find",
    "names",
    "recipe",
]
