"""Takes host names, addresses, serial numbers and secrets out of texts, and counts what it took.

Each value gets one placeholder for the whole bundle (`<address-1>`), so that one still sees which lines speak of the
same thing. Better too much than too little: a version of four numbers goes as an address.
"""

import ipaddress
import re
from collections import Counter
from collections.abc import Iterable

_WORD = r"[A-Za-z0-9_.-]"
_SENSITIVE = r"token|secret|passw|api[_-]?key|access[_-]?key|credential"
# A name is tried at its begin only and bounded: an unbounded one takes quadratic time on one long word.
_KEY = rf"(?<!{_WORD})(?={_WORD}{{0,64}}(?:{_SENSITIVE})){_WORD}{{1,96}}"
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("secret", re.compile(rf"(?i)({_KEY}[\"']?\s{{0,8}}[=:]\s{{0,8}}[\"']?)([^\s\"',;]+)")),
    ("secret", re.compile(r"(?i)(\bbearer\s+|\bbasic\s+)([A-Za-z0-9+/=._-]{8,})")),
    ("secret", re.compile(r"([a-z][a-z0-9+.-]{1,16}://[^\s/:@]{0,128}:)([^\s/@]{1,256})(?=@)")),
    ("secret", re.compile(r"()(\b(?:hf|sk|ghp|glpat)[_-][A-Za-z0-9_-]{8,})")),
    ("serial", re.compile(r"(?i)(\b(?:serial[ _-]*(?:number|no\.?)?|vdie[ _-]?id|\bsn)[\"']?\s{0,8}[=:]\s{0,8}[\"']?)([A-Za-z0-9][A-Za-z0-9 -]{3,63}[A-Za-z0-9])")),
    ("mac", re.compile(r"()(?<![0-9A-Fa-f:])((?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2})(?![0-9A-Fa-f:])")),
    ("mail", re.compile(r"()(\b[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}\b)")),
    ("address", re.compile(r"()(?<![\w.])((?:[0-9]{1,3}\.){3}[0-9]{1,3})(?!\w|\.[0-9])")),
    ("address", re.compile(r"()(?<![\w:])([0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7})(?![\w:])")),
)  # fmt: skip
_HARMLESS = {"127.0.0.1", "0.0.0.0", "::1", "::"}  # noqa: S104  # names of no host


class Redactor:
    """Redacts the texts of one bundle."""

    def __init__(self, hosts: Iterable[str]) -> None:
        """Args: names of hosts and pods that are known."""
        self.counts: Counter[str] = Counter()
        self._different: Counter[str] = Counter()
        self._placeholders: dict[tuple[str, str], str] = {}
        names = sorted({*hosts} - {"", "localhost"}, key=len, reverse=True)
        words = "|".join(map(re.escape, names))
        self._hosts = (
            re.compile(rf"(?i)(?<![A-Za-z0-9])(?:{words})(?![A-Za-z0-9])") if names else None
        )

    def text(self, text: str) -> str:
        """Return the text without them."""
        for kind, pattern in _PATTERNS:
            text = pattern.sub(lambda match, kind=kind: self._replace(kind, match), text)  # type: ignore[misc]  # bound now
        if self._hosts:
            text = self._hosts.sub(lambda match: self._name("host", match[0].lower()), text)
        return text

    def _replace(self, kind: str, match: re.Match[str]) -> str:
        value = match[2]
        if kind == "address" and not _is_address(value):
            return match[0]
        if value.startswith("<"):
            return match[0]  # a placeholder already
        return match[1] + self._name(kind, value)

    def _name(self, kind: str, value: str) -> str:
        self.counts[kind] += 1
        key = (kind, value)
        if key not in self._placeholders:
            self._different[kind] += 1
            self._placeholders[key] = f"<{kind}-{self._different[kind]}>"
        return self._placeholders[key]

    def report(self) -> dict[str, dict[str, int]]:
        """Return how much of each kind was taken: occurrences and different values, never a value."""
        return {
            kind: {"occurrences": count, "different": self._different[kind]}
            for kind, count in sorted(self.counts.items())
        }


def _is_address(text: str) -> bool:
    if text in _HARMLESS:
        return False
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
