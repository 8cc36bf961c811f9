"""What a reproduction has to say, in the words that terminal and page share."""

from collections.abc import Callable, Iterator, Sequence

from capture_canary import terminal
from capture_canary.model import Report, VerdictName
from capture_canary.probe.messages import Captured
from capture_canary.report import words
from capture_canary.reproduction.journal import Journal
from capture_canary.reproduction.measure import Reproduction, Restart
from capture_canary.reproduction.outcome import Compared, Outcome, Round, outcomes
from capture_canary.trend.line import Line


def resumed(journal: Journal) -> list[str]:
    """Return what an earlier run of the same command left, in words."""
    lines = [
        f"{terminal.ARMS[arm]}: kept, {_captures(one.records)} captures of {words.moment(one.begun)}"
        for arm, one in journal.complete().items()
    ]
    last = journal.attempts[-1] if journal.attempts else None
    if last and not last.complete:
        lines.append(
            f"{terminal.ARMS[last.arm]}: {(last.ended and last.ended.failure) or 'interrupted'} in round "
            f"{_round(last.records)} of {journal.header.settings.rounds}; new processes begin with empty "
            "HCCL lists, so this arm begins anew, and what was measured is shown beside it"
        )
    return lines


def _captures(records: Sequence[object]) -> int:
    return sum(1 for one in records if isinstance(one, Captured) and one.rank == 0)


def _round(records: Sequence[object]) -> int:
    return max((one.capture.round + 1 for one in records if isinstance(one, Captured)), default=0)


def restarted(restart: Restart) -> str:
    """Return in words what an attempt came to that was not finished."""
    arm = terminal.ARMS[restart.attempt.arm]
    came = (
        f"{len(restart.outcome.rounds)} rounds, copies {fitted(restart.outcome.copies, 1, '')}"
        if restart.outcome
        else "nothing captured"
    )
    return f"{arm}, begun {words.moment(restart.attempt.begun)}, {restart.why}: {came}"


def _ms(one: Round) -> str:
    return f"{one.seconds / one.captures * 1e3:.2f}"


def _copies(one: Round) -> str:
    return "?" if one.copies is None else f"{one.copies / one.captures:,.0f}"


def _share(one: Round) -> str:
    return "?" if one.share is None else f"{one.share:.1%}"


ROWS: dict[str, Callable[[Round], str]] = {
    "ms": _ms,
    "H2D copies": _copies,
    "share of the time in copies": _share,
}
"""What is said of a round."""


def fitted(found: Line | None, scale: float, unit: str) -> str:
    """Return a line in words: its slope with its interval, and how straight it is."""
    if found is None:
        return "too few captures for a line"
    straight = "" if found.r2 is None else f", R² {found.r2:.4f}"
    return (
        f"{found.slope * scale:+.4g}{unit} with each further capture "
        f"(95 %: {found.lower * scale:.4g} to {found.upper * scale:.4g}){straight}, over {found.n} captures"
    )


LAW = {True: "met exactly", False: "not met", None: "does not apply"}
"""Of the growth law, as a report has it."""


def called(report: Report) -> str:
    """Return the verdict with its cause."""
    return f"{report.verdict}{f' ({report.cause})' if report.cause else ''}"


IMAGE_COLUMNS = (
    "image",
    "stack",
    "arm",
    "copies more",
    "ms more",
    "R² of copies",
    "verdict",
    "law",
)


def images(
    found: Reproduction, compared: Sequence[Compared]
) -> Iterator[tuple[VerdictName, tuple[str, ...]]]:
    """Yield the verdict and a row of `IMAGE_COLUMNS` for each arm, this image's first."""
    for one in (Compared("here", found.report, None), *compared):
        name, report = words.plain(one.image), one.report
        if report is None:
            yield "unknown", (name, words.plain(one.failure or "", 400), *["-"] * 4, "unknown", "-")
            continue
        emulated = "EMULATED " if report.emulated else ""
        about = (f"{emulated}{words.plain(words.stack(report.stack))}",)
        verdict = (called(report), LAW[report.matches_law])
        arms = outcomes(report)
        if not arms:
            reason = words.plain(report.reason, 400)
            yield report.verdict, (name, f"{about[0]}: {reason}", *["-"] * 4, *verdict)
        for place, arm in enumerate(arms):
            first = (name, *about) if not place else ("", "")
            last = verdict if not place else ("", "")
            yield report.verdict, (*first, *_arm(arm), *last)


def _arm(outcome: Outcome) -> tuple[str, str, str, str]:
    copies, seconds = outcome.copies, outcome.seconds
    return (
        terminal.ARMS[outcome.series.arm],
        words.amount(copies.slope if copies else None),
        words.amount(seconds.slope if seconds else None, 1e3),
        f"{copies.r2:.4f}" if copies and copies.r2 is not None else "-",
    )
