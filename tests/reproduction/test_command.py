"""`capture-canary reproduce` as a command: what is no option of it is refused by name, before vLLM is started."""

from pathlib import Path

import pytest
from tests.reproduction import journaling

from capture_canary import cli
from capture_canary.reproduction.journal import NAME, open_journal


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        *(("--sizes", value) for value in ("", "x", "0", "1,1", "1,", "4097", "-1", "٣", "1.5")),
        ("--sizes", ",".join(map(str, range(1, 300)))),
        *(("--tp", value) for value in ("0", "x")),
        *(("--cudagraph-mode", value) for value in ("full", "NOPE")),
        ("--image-mount", "/nonexistent/[/red]"),
        ("--image-mount", "a\0b"),
    ],
)
def test_what_is_no_option_is_refused_by_name(
    flag: str, value: str, capsys: pytest.CaptureFixture[str]
):
    try:
        code = cli.main(["reproduce", f"{flag}={value}"])
    except SystemExit as end:
        code = int(end.code or 0)

    assert 2 == code
    assert flag in capsys.readouterr().err


def test_a_folder_of_another_reproduction_is_refused_and_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    open_journal(tmp_path, journaling.header()).close()
    before = (tmp_path / NAME).read_bytes()

    assert 2 == cli.main(["reproduce", "--emulate", "cann=8.5.0", "-o", str(tmp_path)])

    said = " ".join(capsys.readouterr().err.split())
    assert "was made with other settings" in said
    assert "--rounds was 3, is 100" in said
    assert before == (tmp_path / NAME).read_bytes()


def test_a_place_that_is_no_folder_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "file").touch()

    assert 2 == cli.main(["reproduce", "--emulate", "cann=8.5.0", "-o", str(tmp_path / "file")])
    assert "file" in capsys.readouterr().err
