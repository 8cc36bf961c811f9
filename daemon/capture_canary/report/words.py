"""How times, stacks and their changes are said."""

from collections.abc import Mapping
from datetime import datetime, timezone

from capture_canary.model import Evidence, Stack

_NAMES = {
    "cann": "CANN",
    "hcomm": "hcomm",
    "hccl": "HCCL",
    "soc": "SoC",
    "driver": "driver",
    "torch_npu": "torch-npu",
    "vllm": "vLLM",
    "vllm_ascend": "vllm-ascend",
}
_SHORT = ("cann", "hcomm", "soc", "driver")
EVIDENCE: dict[Evidence, str] = {
    "probe": "probe",
    "trace": "trace of a server",
    "log": "log of a server",
}
_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0


def moment(at: float) -> str:
    """Return a moment in UTC, to the minute."""
    return datetime.fromtimestamp(at, tz=timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def span(seconds: float) -> str:
    """Return how long, in the unit that reads best."""
    for unit, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{max(seconds, 0):.0f} s"


def stack(found: Stack | None, name: str = "") -> str:
    """Return a stack in a line, e.g. "CANN 8.5.0, SoC a3, driver 25.5.0"."""
    if not found:
        return f"stack {name}" if name else "an unknown stack"
    cann = found["cann"].value if "cann" in found else None
    parts = [
        f"{label(key)} {found[key].value}"
        for key in _SHORT
        if key in found and found[key].value and not (key == "hcomm" and found[key].value == cann)
    ]
    return ", ".join(parts) or f"stack {name}"


def label(fact: str) -> str:
    """Return what people call a fact of a stack."""
    return _NAMES.get(fact, fact)


def difference(old: Mapping[str, Stack], new: Mapping[str, Stack]) -> str:
    """Return what changed between what ran here before and after."""
    before, after = _values(old), _values(new)
    parts = [
        f"{label(name)} {_joined(before.get(name))} → {_joined(after.get(name))}"
        for name in sorted(before.keys() | after.keys(), key=_rank)
        if before.get(name) != after.get(name)
    ]
    # hcomm comes with CANN: where both say the same, once is enough.
    if "cann" in after and parts[1:] and _same_change(before, after):
        parts = [part for part in parts if not part.startswith("hcomm ")]
    return "; ".join(parts) or "same versions, other containers"


def _values(stacks: Mapping[str, Stack]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for facts in stacks.values():
        for name, fact in facts.items():
            if fact.value is not None:
                found.setdefault(name, set()).add(fact.value)
    return found


def _same_change(before: dict[str, set[str]], after: dict[str, set[str]]) -> bool:
    return before.get("cann") == before.get("hcomm") and after.get("cann") == after.get("hcomm")


def _joined(values: set[str] | None) -> str:
    return ", ".join(sorted(values)) if values else "none"


def _rank(name: str) -> tuple[int, str]:
    order = list(_NAMES)
    return (order.index(name) if name in order else len(order), name)


def amount(value: float | None, scale: float = 1.0) -> str:
    """Return a growth with its sign, or a dash where none was measured."""
    if value is None:
        return "-"
    scaled = value * scale
    return f"{scaled:+,.0f}" if abs(scaled) >= 100 or scaled == int(scaled) else f"{scaled:+.3f}"  # noqa: PLR2004 - enough digits


def plain(text: str, limit: int = 200) -> str:
    """Return text for a terminal: in one line, bounded, without what could steer the terminal."""
    kept = "".join(character if character.isprintable() else " " for character in text)
    return kept if len(kept) <= limit else kept[: limit - 1] + "…"
