"""The same probe in one image after another on this node: what decides an upgrade."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from capture_canary.images import local, matrix
from capture_canary.images.run import NotRemovedError, RunError, answer, run
from capture_canary.images.turn import Node, RefusedError
from capture_canary.model import ArmName, Estimate, Report, VerdictName
from capture_canary.report.words import plain
from capture_canary.stack import versions
from capture_canary.stack.exposure import family
from capture_canary.trend import growth

_START_SECONDS = 30.0
"""What a container may take beside its probe: to start, to import, to print."""


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of each image."""

    arms: tuple[ArmName, ...] = ("as_configured", "aiv")
    budget: float = 60.0
    """Seconds that a probe may take."""
    package: str | None = None
    """Folder that the injector filled, for images that do not have us."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One image in one mode."""

    arm: ArmName
    mode: str | None
    """The expansion mode in force; None: nobody set one, it is the SoC's default."""
    verdict: VerdictName
    copies: Estimate | None
    """H2D copies more with each further capture, of the worst series."""
    seconds: Estimate | None
    """Seconds more with each further capture, of the same."""
    matches_law: bool | None


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One image, with what was measured or why nothing was."""

    image: str
    id: str | None = None
    labels: dict[str, str] = {}
    """What it says of itself, without `io.capture-canary.`."""
    problem: str | None = None
    """Why it was not measured."""
    contradictions: list[str] = []
    """Where its content is another than it says: then its rows are those of its content."""
    rows: list[Row] = []
    report: Report | None = None

    @property
    def cann(self) -> str | None:
        """The version that was measured, else the one that it is said to have."""
        return _fact(self.report, "cann") or self.labels.get("cann")


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All images, in the order in which they were asked."""

    schema_version: int = 1
    emulated: bool
    images: list[Compared]

    @property
    def verdict(self) -> Literal["healthy", "degraded", "unknown"]:
        """The worst: unknown where one image was not measured, or is not what it says."""
        if not self.images or any(one.problem or one.contradictions for one in self.images):
            return "unknown"
        found = {one.report.verdict for one in self.images if one.report}
        if "unknown" in found:
            return "unknown"
        return "degraded" if "degraded" in found else "healthy"


def compare(client: Any, node: Node, image: str, ask: Ask) -> Compared:
    """Probe in one image, once the gate lets it; what keeps it from that is told in the answer."""
    found = _inspect(client, image)
    if found.problem:
        return found
    try:
        report = _probe(client, node, found, ask)
    except (RefusedError, RunError) as error:
        if isinstance(error, NotRemovedError):
            node.latch(str(error))
        return msgspec.structs.replace(found, problem=str(error))
    return msgspec.structs.replace(
        found,
        contradictions=contradictions(found.labels, report),
        rows=[row for arm in ask.arms if (row := _row(report, arm))],
        report=report,
    )


def contradictions(labels: dict[str, str], report: Report) -> list[str]:
    """Return what an image says of itself and its content does not bear out."""
    found = []
    cann = _fact(report, "cann")
    if (said := labels.get("cann")) and cann and _order(said) != _order(cann):
        found.append(f"its label says CANN {said}, in it is {cann}")
    soc = family(_fact(report, "soc"))
    families = {cell.soc: cell.family for cell in matrix.load()}
    if (said := labels.get("soc")) and soc and families.get(said, said) != soc:
        found.append(f"its label says SoC {said}, it runs on {soc}")
    if (said := labels.get("kind")) and (said == "emulated") != report.emulated:
        what = "emulated" if report.emulated else "real"
        found.append(f"its label says {said}, its CANN is {what}")
    return [plain(one) for one in found]


def _inspect(client: Any, image: str) -> Compared:
    try:
        about = local.inspect(client, image)
    except local.ImageError as error:
        return Compared(image=image, problem=str(error))
    return Compared(image=image, id=about.id, labels=about.labels)


def _probe(client: Any, node: Node, about: Compared, ask: Ask) -> Report:
    """One probe, whole: only as many captures as the other images have can be compared with theirs."""
    with node.turn(cann=about.labels.get("cann")) as turn:
        words = ["probe", "--json", "--full", "--budget", f"{ask.budget:g}"]
        words += ["--devices", ",".join(map(str, turn.numbers))]
        words += [word for arm in ask.arms for word in ("--arm", arm)]
        share = turn.share
        if ask.package:
            share = msgspec.structs.replace(share, mounts=(*share.mounts, ask.package))
        ran = run(
            client,
            about.id or about.image,
            words,
            deadline=ask.budget + _START_SECONDS,
            lock=node.lock,
            share=share,
            entrypoint=[f"{ask.package}/bin/capture-canary"] if ask.package else None,
        )
    return answer(ran, Report)


def _row(report: Report, arm: ArmName) -> Row | None:
    series = [one for one in report.series if one.arm == arm]
    worst = growth.worst(report.series, arm=arm)
    if not series or worst.series is None:
        return None
    grows = growth.growing(series)
    return Row(
        arm=arm,
        mode=series[0].mode,
        verdict=_verdict(report, arm, grows=grows),
        copies=worst.copies,
        seconds=worst.seconds,
        matches_law=growth.matches_law(report.series[worst.series]) if grows else None,
    )


def _verdict(report: Report, arm: ArmName, *, grows: bool | None) -> VerdictName:
    """The report judges the mode that is configured; what another one would be follows from its copies."""
    if arm == "as_configured":
        return report.verdict
    if grows is None:
        return "unknown"
    if grows:
        return "degraded"
    return "mitigated" if report.verdict == "degraded" else "healthy"


def _fact(report: Report | None, name: str) -> str | None:
    return report.stack[name].value if report and name in report.stack else None


def _order(version: str) -> versions.Version | str:
    return versions.parse(version) or version.casefold()


def missing(found: Compared, arms: Sequence[ArmName]) -> list[ArmName]:
    """Return the arms that an image was asked for and made no captures in."""
    made = {row.arm for row in found.rows}
    return [arm for arm in arms if arm not in made] if found.report else []
