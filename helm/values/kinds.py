"""Types that values are made of, as Kubernetes has them; `about` documents a value."""

from typing import Annotated, Any, Literal

import msgspec

Text = str
Labels = dict[str, str]
Raw = dict[str, Any]
"""A piece of a Kubernetes object, taken as it is."""
Mode = Literal["observe", "probe", "job"]
Duration = Annotated[str, msgspec.Meta(pattern=r"^([0-9]{1,15}(ms|s|m|h|d|w))+$")]
Name = Annotated[str, msgspec.Meta(pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$", max_length=253)]
"""A name in Kubernetes, or nothing."""
AbsolutePath = Annotated[str, msgspec.Meta(pattern="^(/.*)?$", max_length=4096)]
Share = Annotated[int, msgspec.Meta(ge=0)] | Annotated[str, msgspec.Meta(pattern="^[0-9]{1,3}%$")]
"""A number of pods, or a share of all."""
Digest = Annotated[str, msgspec.Meta(pattern="^(sha256:[0-9a-f]{64})?$")]


class Values(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A section: a key that it does not have is an error."""


def about(text: str, **bounds: Any) -> msgspec.Meta:
    """Say what a value is for."""
    return msgspec.Meta(description=text, **bounds)


class Image(Values, frozen=True):
    """Where an image comes from."""

    registry: Annotated[str, about("Registry; `global.imageRegistry` comes before it.")] = "ghcr.io"
    repository: Annotated[str, about("Repository.")] = "capture-canary/capture-canary"
    tag: Annotated[str, about("Tag; none: made from `version`.", pattern="^[A-Za-z0-9_.-]*$")] = ""
    digest: Annotated[Digest, about("Digest (`sha256:…`); comes before the tag.")] = ""
    pullPolicy: Annotated[  # values are spelled as Kubernetes spells
        Literal["IfNotPresent", "Always", "Never"], about("When to pull.")
    ] = "IfNotPresent"


class Secret(Values, frozen=True):
    """A pull secret."""

    name: str


class Amounts(Values, frozen=True, omit_defaults=True):
    """What a container takes of a node."""

    requests: Annotated[dict[str, str | int], about("What the scheduler keeps free.")] = {}
    limits: Annotated[dict[str, str | int], about("What the kernel allows.")] = {}
