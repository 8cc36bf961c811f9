"""The report of a reproduction: what it says, that it needs nothing else, and that nothing in it runs."""

import json
import re
from pathlib import Path

import msgspec
import pytest
from tests.builders import make_report
from tests.reproduction import journaling

from capture_canary.model import Report
from capture_canary.reproduction import page
from capture_canary.reproduction.journal import open_journal
from capture_canary.reproduction.measure import Reproduction, measure
from capture_canary.reproduction.outcome import Compared

ATTACK = "\"><img src=x onerror=alert(1)><script>alert(1)</script>'\x1b[31m"


@pytest.fixture
def found(tmp_path: Path) -> Reproduction:
    """Both arms complete, the second after a restart."""
    journaling.written(tmp_path).close()
    journal = open_journal(tmp_path, journaling.header())
    journaling.write(journal, "aiv", grows=False)
    journal.end(None)
    made = measure(journal, {}, budget_seconds=1, observe=lambda _event: pytest.fail("it measured"))
    journal.close()
    return made


def text_of(found: Reproduction, compared: tuple[Compared, ...] = (), node: str = "node") -> str:
    return page.page(found, compared, node=node, version="0", command="capture-canary reproduce")


def charts(text: str) -> list[dict]:  # type: ignore[type-arg]  # as JSON has them
    block = re.search(
        r'<script type="application/json" id="charts">(.*?)</script>', text, re.DOTALL
    )
    assert block is not None
    return list(json.loads(block[1]))


def cells(text: str) -> list[str]:
    return re.findall(r"<td[^>]*>(.*?)</td>", text)


def test_what_was_kept_is_shown_without_measuring_again(found: Reproduction):
    text = text_of(found)

    assert "EMULATED" in text
    assert "as configured: <b>+25</b> copies with each capture, R² 1.0000" in text
    assert "AIV: <b>+0</b> copies with each capture" in text
    assert "AIV, begun" in text
    assert "interrupted: 2 rounds" in text
    assert "Rounds 1, 2 and 3 side by side" in text
    assert {"+25", "1.0000", "FULL", "0, 1", "0.23.0"} <= {*cells(text)}


def test_a_point_is_a_capture_and_a_line_goes_through_them(found: Reproduction):
    copies, times, share, _ = charts(text_of(found))

    named = {one["label"]: one for one in copies["lines"]}
    assert [
        "AIV, before a restart",
        "as configured, rank 0",
        "as configured: +25 with each capture",
        "AIV, rank 0",
        "AIV: +0 with each capture",
    ] == [*named]
    made = found.report.series[0].captures
    assert [[one.order, one.h2d_copies] for one in made] == named["as configured, rank 0"]["points"]
    fit = named["as configured: +25 with each capture"]
    assert [made[0].order, made[-1].order] == [x for x, _ in fit["points"]]
    assert 25 * (made[-1].order - made[0].order) == pytest.approx(
        fit["points"][1][1] - fit["points"][0][1]
    )
    assert "ms" == times["unit"]
    assert "round" == share["x"]
    one = made[0]
    assert one.copy_seconds is not None
    first = sum(c.copy_seconds or 0 for c in made[:2]) / sum(c.seconds for c in made[:2])
    assert pytest.approx([1, 100 * first]) == share["lines"][0]["points"][0]


def test_other_images_stand_beside_and_one_that_failed_says_why(found: Reproduction):
    other = make_report("healthy")
    compared = (Compared("b", other, None), Compared("c", None, "there is no image c here"))

    text = text_of(found, compared)

    assert "The same in other images" in text
    assert {"here", "b", "c", "healthy", "there is no image c here"} <= {*cells(text)}
    assert 6 == len(charts(text))


def test_nothing_of_it_runs_or_comes_from_elsewhere(found: Reproduction, tmp_path: Path):
    """Everything that a container, a file or a user can write."""
    hostile = json.loads(msgspec.json.encode(found.report))
    hostile["reason"] = hostile["mode"] = hostile["mode_source"] = ATTACK
    hostile["stack"] = {ATTACK: {"value": ATTACK, "source": ATTACK}}
    report = msgspec.convert(hostile, Report)
    found = found._replace(
        report=report, restarts=[one._replace(why=ATTACK) for one in found.restarts]
    )

    text = text_of(found, (Compared(ATTACK, report, None), Compared(ATTACK, None, ATTACK)), ATTACK)

    assert "<img" not in text
    assert "<script>alert" not in text
    assert not re.search(r'(src|href)="', text)
    assert "default-src &#x27;none&#x27;" in text
    files = page.write(tmp_path, found, (), node=ATTACK, command=ATTACK)
    assert ["report.html", "report.json", "report.png"] == [one.name for one in files]
    assert files[2].read_bytes().startswith(b"\x89PNG")
    assert report == msgspec.json.decode(files[1].read_bytes(), type=Report)
