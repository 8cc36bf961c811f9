"""Profiles: as msprof writes them, and as anybody might."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capture_canary.cli import main
from capture_canary.profiles import statistic
from capture_canary.profiles.statistic import ProfileError, find, read

HEADING = "Device_id,Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance\n"
ROWS = (
    "host,runtime,MemCopySync,3000.0,600,5.0,4,9,0.1\n"
    "host,runtime,KernelLaunch,1000.0,50,20,10,30,2\n"
    "host,acl,aclrtMemcpy,3500.5,600,5.8,4,9,0.1\n"
    "host,acl,aclmdlRICaptureEnd,1499.5,4,374,1,900,7\n"
    "host,communication,HcomAllReduce,9,1,9,9,9,0\n"
)


def write(folder: Path, text: str, name: str = "api_statistic_20260101.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_counts_and_shares(tmp_path: Path):
    profile = read(write(tmp_path, HEADING + ROWS))

    runtime, acl = profile.levels
    assert ("runtime", 600, 0.75) == (runtime.level, runtime.copies, runtime.share)
    assert pytest.approx((0.0035005, 0.7001)) == (acl.seconds, acl.share)
    assert 4 == profile.captures


def test_devices_are_added_up(tmp_path: Path):
    two = HEADING + ROWS + ROWS.replace("host", "1")

    assert [1200, 1200] == [one.copies for one in read(write(tmp_path, two)).levels]


def test_a_level_without_copies_has_none(tmp_path: Path):
    (level,) = read(write(tmp_path, HEADING + "0,acl,aclrtMalloc,0,0,0,0,0,0\n")).levels

    assert (0, None) == (level.copies, level.share)


def test_files_are_found_below_a_folder(tmp_path: Path):
    deep = tmp_path / "PROF_1" / "mindstudio_profiler_output"
    deep.mkdir(parents=True)
    path = write(deep, HEADING + ROWS)

    assert [path] == find(tmp_path)


BAD = {
    "empty": ("", "no column 'Level'"),
    "another table": ("a,b,c\n1,2,3\n", "no column 'Level'"),
    "short line": (HEADING + "host,acl\n", ":2: 2 fields are too few"),
    "no number": (HEADING + "host,acl,aclrtMemcpy,many,1\n", ":2: Time(us) is 'many'"),
    "nan": (HEADING + "host,acl,aclrtMemcpy,nan,1\n", "Time(us) is 'nan'"),
    "negative": (HEADING + "host,acl,aclrtMemcpy,1,-1\n", "Count is '-1'"),
    "endless": (HEADING + "host,acl,aclrtMemcpy,1,1e999\n", "Count is '1e999'"),
    "huge field": (HEADING + "host,acl," + "x" * 5000 + ",1,1\n", "field larger"),
    "no level": (HEADING + "host,node,launch,1,1\n", "no rows of level runtime or acl"),
}


@pytest.mark.parametrize(("text", "reason"), BAD.values(), ids=BAD.keys())
def test_bad_files_are_refused_with_file_and_line(tmp_path: Path, text: str, reason: str):
    path = write(tmp_path, text)

    with pytest.raises(ProfileError) as refused:
        read(path)

    assert str(path) in str(refused.value)
    assert reason in str(refused.value)


def test_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write(tmp_path, HEADING + ROWS)
    monkeypatch.setattr(statistic, "MAX_BYTES", 100)
    with pytest.raises(ProfileError, match="larger than"):
        read(path)
    monkeypatch.setattr(statistic, "MAX_BYTES", 10_000)
    monkeypatch.setattr(statistic, "MAX_ROWS", 3)
    with pytest.raises(ProfileError, match="more than 3 rows"):
        read(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=400))
def test_whatever_follows_the_heading_is_read_or_refused(tmp_path: Path, rest: bytes):
    path = tmp_path / "api_statistic.csv"
    path.write_bytes(HEADING.encode() + rest)

    try:
        profile = read(path)
    except ProfileError:
        return
    assert all(one.copies >= 0 and one.seconds >= 0 for one in profile.levels)


def test_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "200")
    write(tmp_path, HEADING + ROWS)

    assert 0 == main(["profile", str(tmp_path)])

    shown = capsys.readouterr().out
    assert "75.0%" in shown
    assert "150.0" in shown


def test_command_without_a_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert 2 == main(["profile", str(tmp_path)])
    assert "--runtime-api=on" in capsys.readouterr().err
    assert 2 == main(["profile", str(tmp_path / "none.csv")])
    assert "not a file" in capsys.readouterr().err
