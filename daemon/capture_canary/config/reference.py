"""The tables of docs/configuration.md, made from the model."""

from capture_canary.config.keys import Key, keys, sections


def reference() -> str:
    """Return every key with type, default, variable and why, one table a section, in Markdown."""
    names = ["", *sections()]
    return "\n\n".join(_table(section) for section in names) + "\n"


def _table(section: str) -> str:
    rows = [key for key in keys().values() if key.name.rpartition(".")[0] == section]
    head = ["| Key | Value | Default | Variable | Why |", "| --- | --- | --- | --- | --- |"]
    title = f"### `{section}`" if section else "### Top level"
    about = (sections()[section].__doc__ or "") if section else "Keys outside of any section."
    return "\n".join([title, "", about, "", *head, *map(_row, rows)])


def _row(key: Key) -> str:
    value = key.expects + (" or null" if key.optional else "")
    why = (key.meta.description or "") + (" *Needs a restart.*" if key.restart else "")
    default = key.text(key.default) or "(none)"
    return f"| `{key.name}` | {value} | `{default}` | `{key.variable}` | {why} |"
