"""Small pieces of HTML: everything that comes from outside is escaped here."""

import base64
import hashlib
import html
from collections.abc import Sequence
from typing import NamedTuple

import msgspec


class Cell(NamedTuple):
    """A cell of a table; its text is escaped."""

    text: str
    style: str = ""


def text(raw: object) -> str:
    """Escape whatever it is for use in an element or a quoted attribute."""
    return html.escape(str(raw), quote=True)


def table(headings: Sequence[Cell], rows: Sequence[Sequence[Cell]], nothing: str) -> str:
    """Return a table, or a word where it would be empty."""
    if not rows:
        return f'<p class="quiet">{text(nothing)}</p>'
    head = "".join(f'<th class="{text(cell.style)}">{text(cell.text)}</th>' for cell in headings)
    body = "".join(
        "<tr>"
        + "".join(f'<td class="{text(cell.style)}">{text(cell.text)}</td>' for cell in row)
        + "</tr>\n"
        for row in rows
    )
    return (
        f'<div class="scroll"><table class="rows"><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )


def data(identifier: str, value: object) -> str:
    """Return a block of JSON that a script reads; nothing in it can end the block."""
    encoded = msgspec.json.encode(value).decode()
    for character in "<>&\u2028\u2029":
        encoded = encoded.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" id="{text(identifier)}">{encoded}</script>'


def policy(scripts: Sequence[str], styles: str) -> str:
    """Return the content security policy of a page that runs these inline parts and nothing else."""
    allowed = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'sha256-{_digest(styles)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(part: str) -> str:
    return base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
