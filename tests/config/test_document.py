"""YAML from anyone: a tree, or an error that names the place. Never anything else, and never for long."""

import os
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from capture_canary.config import ConfigError, File, combine
from capture_canary.config.document import MAX_BYTES, MAX_DEPTH, read_file
from capture_canary.config.keys import keys, sections


def problem(text: bytes | str) -> str:
    data = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(ConfigError) as error:
        combine(File("f.yaml", data), {}, {}, privileged=True)
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: &x 1\nb: *x\n", "f.yaml:1: aliases and anchors are refused"),
        ("mode: probe\nlogs: *x\n", "f.yaml:2: aliases and anchors are refused"),
        ("mode: !!python/name:os.system\n", "f.yaml:1: tags are refused"),
        ("!!map\nmode: probe\n", "f.yaml:1: tags are refused"),
        ("mode: probe\n---\nmode: probe\n", "f.yaml:2: but found another document"),
        ("mode: [\n", "f.yaml:2: expected the node content, but found '<stream end>'"),
        ("mode: a: b\n", "f.yaml:1: mapping values are not allowed here"),
        ("mode: probe\n\tx: 1\n", "f.yaml:2: found character '\\t' that cannot start any token"),
        ('mode: "\\UFFFFFFFF"\n', "f.yaml: "),
        ("mode: 'probe\x00'\n", "f.yaml: "),
        (b"mode: probe\nlisten: \xff\n", "f.yaml:2: is not UTF-8"),
        (
            "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
            f"f.yaml:1: is nested deeper than {MAX_DEPTH}",
        ),
        ("[" * 20_000, f"f.yaml:1: is nested deeper than {MAX_DEPTH}"),
        ("{" * 20_000, f"f.yaml:1: is nested deeper than {MAX_DEPTH}"),
        ("- " * 20_000, f"f.yaml:1: is nested deeper than {MAX_DEPTH}"),
        ("? " * 20_000, f"f.yaml:1: is nested deeper than {MAX_DEPTH}"),
        ("[a, b]\n", "f.yaml:1: the file must be keys and values"),
        ("probe: 3\n", "f.yaml:1: probe must be keys and values"),
        ("? [a, b]\n: 1\n", "f.yaml:1: a key must be a word"),
        ("mode: probe\nmode: job\n", "f.yaml:2: 'mode' is there twice, first in line 1"),
        ("<<: {mode: probe}\n", "f.yaml:1: unknown key '<<'"),
    ],
)
def test_what_is_refused_is_named_with_its_line(text: bytes | str, expected: str):
    assert problem(text).startswith(expected)


def test_a_billion_laughs_never_get_to_laugh():
    lines = ["a0: &a0 [lol]"] + [f"a{n}: &a{n} [{f'*a{n - 1},' * 9}]" for n in range(1, 10)]
    assert problem("\n".join(lines)) == "f.yaml:1: aliases and anchors are refused"


def test_too_much_is_refused_before_it_is_parsed():
    assert problem(b"#" * (MAX_BYTES + 1)) == "f.yaml: is larger than 64 KiB"


def test_a_thousand_wrong_keys_are_twenty_problems():
    with pytest.raises(ConfigError) as error:
        combine(File("f", b"".join(b"k%d: 1\n" % n for n in range(1000))), {}, {})
    assert len(error.value.problems) == 20


def test_a_foreign_value_is_quoted_short_printable_and_on_one_line():
    text = problem('mode: "' + "\\e[31m\\n\\ud800" * 1000 + '"\n')
    assert len(text) < 300
    assert text.isprintable()


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "---\n", "~\n", "probe:\n", "probe: {}\n", "\ufeff"]
)
def test_an_empty_file_or_section_says_nothing(text: str):
    file = File("f", text.encode())
    assert combine(file, {}, {}, privileged=True) == combine(None, {}, {}, privileged=True)


def test_a_folder_or_fifo_is_no_file_and_does_not_hold(tmp_path: Path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (tmp_path, fifo, Path("/dev/null")):
        with pytest.raises(ConfigError, match=r"no regular file|Is a directory"):
            read_file(path)


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"missing\.yaml: No such file"):
        read_file(tmp_path / "missing.yaml")
    with pytest.raises(ConfigError, match=r"null (byte|character)"):
        read_file(Path("a\0b"))


def test_an_endless_file_is_read_to_its_bound(tmp_path: Path):
    path = tmp_path / "long.yaml"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    assert len(read_file(path).data) == MAX_BYTES + 1


WORDS = [
    *keys(),
    *(name.rpartition(".")[2] for name in keys()),
    *sections(),
    *(":", ": ", "\n", "\n  ", "- ", "[", "]", "{", "}", ", ", "&a ", "*a", "!!str ", "|\n", ">"),
    *(
        "'",
        '"',
        "?",
        "#",
        "---",
        "...",
        "%YAML 1.1\n",
        "%TAG ! x\n",
        "6h",
        "2GiB",
        "true",
        "~",
        "-1",
    ),
    *("1e999", "\t", "\\U00110000", "\\x", "\x00", "\x85", "\u2028", "\ud7ff", "9" * 400),
]


def outcome(file: File) -> str:
    """Load it; return what it came to. Whatever is raised but a ConfigError fails the test."""
    try:
        combine(file, {}, {}, privileged=True)
    except ConfigError as error:
        return str(error)
    return "f.yaml: taken"


@settings(deadline=None)
@given(st.one_of(st.text(), st.lists(st.sampled_from(WORDS)).map("".join)))
@example("listen: '[::1%'")
@example("listen: '[:]:80'")
@example("gate: {npu_exporter: 'http://[::1'}")
@example("gate: {npu_exporter: 'http://h:99999999/'}")
@example("probe: {cron: '* * * * mon-sun/99999999999999999999'}")
@example("probe: {cron: '*/0 * * * *'}")
@example("probe: {cron: '1-0 0 30 2 *'}")
@example('state_dir: "/\\0"')
def test_any_text_is_settings_or_a_config_error(text: str):
    assert outcome(File("f.yaml", text.encode(errors="surrogatepass"))).startswith("f.yaml")


@settings(deadline=None)
@given(st.binary())
def test_any_bytes_are_settings_or_a_config_error(data: bytes):
    assert outcome(File("f.yaml", data)).startswith("f.yaml")


NO_YAML = ("'", "* * * * *", "[::]:1")
VALUES = [
    *("x", "-1", "0", "1e999", "nan", "inf", "[]", "[[]]", "{}", "[x, x]", "~", "''", "9" * 5000),
    *("/", "//\\", "'* * * * *'", "a=b,", "http://", "'[::]:1'", ":99999", "0ms", "1TiB", *NO_YAML),
]


@pytest.mark.parametrize("value", VALUES)
def test_every_key_takes_or_refuses_every_kind_of_value(value: str):
    for name in keys():
        section, _, key = name.rpartition(".")
        text = f"{section}:\n  {key}: {value}\n" if section else f"{key}: {value}\n"
        told = outcome(File("f.yaml", text.encode()))
        assert told == "f.yaml: taken" or f": {name}: " in told or value in NO_YAML, name
