"""Stand-ins for the images of CANN, on machines without an NPU: the bases of the matrix' emulated cells."""

import hashlib
import io
import json
import re
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from capture_canary import emulate, environments
from capture_canary.images import debian, matrix
from capture_canary.images.cells import Cell, MatrixError, select
from capture_canary.images.engine import EngineError, explain, refused
from capture_canary.native import emulated_cann_dir

ASCEND: Final = "/usr/local/Ascend"
MADE_FROM: Final = "io.capture-canary.made-from"
_DOCKERFILES: Final = {
    "core": "images/emulated/Dockerfile",
    "vllm": "images/emulated/vllm.Dockerfile",
}

Say = Callable[[str], None]


class _Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """How one is made."""

    name: str
    dockerfile: Path
    arguments: dict[str, str]
    made_from: str
    """Hash of all the rest."""
    parts: dict[str, Path]
    """What the Dockerfile copies, by the name that it has for it."""


def make(client: Any, cell: Cell, cache: Path, source: Path, say: Say) -> str:
    """Return the id of an emulated cell's base, made unless it is there and still what it would be made as.

    Raises:
        MatrixError: the cell's base is no stand-in.
        debian.DebianError, EngineError, environments.RecipeError: it could not be made.
    """
    if cell.kind != "emulated" or cell.base is None:
        raise MatrixError(f"{cell.name}: its base is no stand-in; it is pulled")
    if cell.flavour == "vllm":
        return _make_vllm(client, cell, cache, source, say)
    dockerfile = source / _DOCKERFILES["core"]
    under = debian.image(client, cell.builder, cache, say)
    settings = emulate.parse(f"cann={cell.cann},soc={cell.family}")
    with tempfile.TemporaryDirectory(prefix="capture-canary-standin-") as folder:
        tree = Path(folder, "Ascend")
        home = _ascend(tree, settings)
        arguments = {"DEBIAN": cell.builder, "CANN_HOME": home, "EMULATE": settings.made_of}
        recipe = _Recipe(
            name=cell.base,
            dockerfile=dockerfile,
            arguments=arguments,
            made_from=_digest(under, dockerfile, arguments, tree),
            parts={"Ascend": tree},
        )
        return _build(client, recipe, say)


def _ascend(tree: Path, settings: emulate.Settings) -> str:
    """Lay out /usr/local/Ascend as Ascend's images have it; return the ASCEND_HOME_PATH that they name."""
    if emulate.is_old_layout(settings.cann):
        inside, home = f"ascend-toolkit/{settings.cann}", f"{ASCEND}/ascend-toolkit/latest"
        links = {"ascend-toolkit/latest": settings.cann}
    else:
        inside, home = f"cann-{settings.cann}", f"{ASCEND}/cann-{settings.cann}"
        links = {"cann": inside, "ascend-toolkit/latest": f"../{inside}"}
    with tempfile.TemporaryDirectory() as linked:
        emulate.lay_out(Path(linked, "cann"), Path(ASCEND, inside), settings, emulated_cann_dir())
        shutil.copytree(
            Path(linked, "cann"), tree / inside, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name, target in links.items():
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).symlink_to(target)
    variables = f"export ASCEND_HOME_PATH={home}\nexport ASCEND_TOOLKIT_HOME={home}\n"
    (tree / "ascend-toolkit" / "set_env.sh").write_text(variables, encoding="utf-8")
    return home


def _make_vllm(client: Any, cell: Cell, cache: Path, source: Path, say: Say) -> str:
    """Make the stand-in for an image of vllm-ascend, from an environment on this machine."""
    dockerfile = source / _DOCKERFILES["vllm"]
    alike = select(matrix.load(), kinds=["emulated"], canns=[cell.cann], socs=[cell.soc])
    (core,) = [one for one in alike if one.flavour == "core"]
    under = make(client, core, cache, source, say)
    environment = environments.find(f"vllm-{cell.vllm}")
    packages = environment.site_packages()
    if packages.parent.name != f"python{cell.python}":
        raise MatrixError(
            f"{cell.name}: {environment.folder} is of {packages.parent.name}, the stand-in has Python {cell.python}"
        )
    arguments = {"CANN": core.base or ""}
    recipe = _Recipe(
        name=cell.base or "",
        dockerfile=dockerfile,
        arguments=arguments,
        made_from=_digest(under, dockerfile, arguments, environment.folder / "made-from"),
        parts={"site-packages": packages, "standins": environment.standins},
    )
    return _build(client, recipe, say)


def _digest(under: str, dockerfile: Path, arguments: dict[str, str], tree: Path) -> str:
    digest = hashlib.sha256(f"{under} {json.dumps(arguments)}\n".encode() + dockerfile.read_bytes())
    for path in sorted(tree.rglob("*")) if tree.is_dir() else [tree]:
        digest.update(f"{path.relative_to(tree.parent)}\n".encode())
        if path.is_file() and not path.is_symlink():
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _build(client: Any, recipe: _Recipe, say: Say) -> str:
    label = f"{MADE_FROM}={recipe.made_from}"
    try:
        there = client.api.images(name=recipe.name, filters={"label": label})
        if there:
            return str(there[0]["Id"])
        say(f"building {recipe.name}")
        with tempfile.TemporaryFile() as context:
            _pack(context, recipe)
            stream = client.api.build(
                fileobj=context,
                custom_context=True,
                tag=recipe.name,
                buildargs={**recipe.arguments, "MADE_FROM": recipe.made_from},
                rm=True,
                forcerm=True,
                decode=True,
            )
            for event in stream:
                refused(event)
        return str(client.api.inspect_image(recipe.name)["Id"])
    except Exception as error:  # the SDK lets some of requests' through
        raise EngineError(f"{recipe.name}: {explain(error)}") from error


def _pack(to: Any, recipe: _Recipe) -> None:
    with tarfile.open(fileobj=to, mode="w") as archive:
        content = recipe.dockerfile.read_bytes()
        about = tarfile.TarInfo("Dockerfile")
        about.size = len(content)
        archive.addfile(about, io.BytesIO(content))
        for name, path in recipe.parts.items():
            archive.add(path, name, filter=_roots)
    to.seek(0)


_PIP = re.compile(r"site-packages/pip(-[^/]+)?$")
"""The environment's own pip: the base's is the one that trusts what the base trusts."""


def _roots(about: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if about.name.endswith("__pycache__") or _PIP.match(about.name):
        return None
    about.uid, about.gid, about.uname, about.gname, about.mtime = 0, 0, "", "", 315532800
    return about
