"""Verdicts on the captures of real servers: the trace folder, judged whenever a capture came."""

import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from capture_canary.export.state import State
from capture_canary.logging import get_logger
from capture_canary.model import Capture, Report, Stack, VerdictName
from capture_canary.service.board import Board
from capture_canary.service.reports import evidence
from capture_canary.stack.exposure import effective_mode
from capture_canary.stack.identity import stack_id
from capture_canary.stack.servers import Server
from capture_canary.store import Store
from capture_canary.trace.folder import MAX_FILES, TracedProcess, TraceFolder
from capture_canary.trend import verdict
from capture_canary.trend.report import report_of

EVERY = 2.0
"""Seconds between two looks: a load takes minutes, a look some system calls a file."""
MAX_FURTHER = 2
"""Stacks beside the worst that are exported: a node runs one or two, and has 150 series."""
_SAID = 256
"""Stacks and modes whose last verdict is remembered."""
_WORST: tuple[VerdictName, ...] = ("degraded", "unknown", "mitigated", "healthy")


class TraceWatch:
    """Follows the traces of this folder and keeps the verdict on them."""

    def __init__(self, folder: TraceFolder, board: Board, store: Store) -> None:
        """Bind to what is read and written."""
        self._folder = folder
        self._board = board
        self._store = store
        self._next = 0.0
        self._overfull = False
        self._then: tuple[Stack, set[Path], list[Server]] | None = None
        """Stack, traces that said how it was, and servers without the trace they should have, at the last look."""
        self._said: dict[tuple[str, str | None, bool], tuple[VerdictName, str | None]] = {}
        self._log: Any = get_logger("trace")

    def poll(self) -> None:
        """Look, if it is time; judge, if captures came or more is known of the node."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + EVERY
        new, state = self._folder.poll(), self._board.view.state
        if self._folder.left_out and not self._overfull:
            self._log.warning("traces_left_out", files=self._folder.left_out, followed=MAX_FILES)
        self._overfull = self._folder.left_out > 0
        current = self._folder.current()
        lacking = [one for one in state.servers.servers if one.captures and one.untraced]
        now = (state.stack, {process.file.path for process in current}, lacking)
        if not new and now == self._then:
            return
        # Traces that are no more, or servers that were untraced and are not.
        left = self._then and (self._then[1] - now[1] or len(lacking) < len(self._then[2]))
        self._then = now
        reports = [self._judge(group) for group in self._groups(current)]
        reports += self._untraced(lacking)
        if reports:
            self._publish(reports, new)
        else:
            self._board.state(State.without_traces)
        if left:
            self._retire(reports)

    def _groups(self, current: list[TracedProcess]) -> list[list[TracedProcess]]:
        """The processes by what they run: stack and mode."""
        groups: defaultdict[tuple[str, str | None], list[TracedProcess]] = defaultdict(list)
        for process in current:
            groups[stack_id(self._stack(process)), process.mode].append(process)
        return list(groups.values())

    def _stack(self, process: TracedProcess) -> Stack:
        """What the process called; of what only the node knows, what the node says."""
        own = self._board.view.state.stack
        shared: Stack = {name: own[name] for name in ("driver", "soc") if name in own}
        return {**shared, **process.stack}

    def _judge(self, group: list[TracedProcess]) -> Report:
        ranks = len(group)
        ordered = sorted(
            group, key=lambda one: (one.rank is None, one.rank or 0, one.file.path.name)
        )
        series = [one for number, process in enumerate(ordered) for one in process.series(number)]
        stack, mode = self._stack(group[0]), group[0].mode
        soc = stack["soc"].value if "soc" in stack else None
        control = [p.file.eager.h2d_copies if p.file.eager else None for p in ordered]
        source = "trace" if mode else "default of the SoC"
        judgement = verdict.judge(
            series,
            ranks=ranks,
            hcomm=stack["hcomm"].value if "hcomm" in stack else None,
            soc=soc,
            configured_mode=mode,
            mode_source=source,
            control=control,
            arm_failures={},
            evidence="trace",
            graphs_per_load=max(len(process.captures) for process in ordered),
        )
        return report_of(
            judgement,
            emulated=self._board.view.state.emulated,
            mode=effective_mode(mode, soc),
            mode_source=source,
            stack=stack,
            control=min((seen for seen in control if seen is not None), default=None),
            series=series,
        )

    def _untraced(self, lacking: list[Server]) -> list[Report]:
        """Return what is to be said of servers that were to be traced and are not: nothing is known of them."""
        if not lacking:
            return []
        first = lacking[0]
        why = f"of processes to be traced {len(lacking)} are not, such as {first.pid}: {first.untraced}"
        judgement = verdict.judge(
            (),
            ranks=len(lacking),
            hcomm=None,
            soc=None,
            configured_mode=first.mode.set_to,
            control=None,
            arm_failures={"as_configured": why},
            evidence="trace",
        )
        return [
            report_of(
                judgement,
                emulated=self._board.view.state.emulated,
                mode=first.mode.in_force,
                mode_source=f"servers: {first.mode.source}",
                stack=first.stack,
                control=None,
                series=[],
            )
        ]

    def _publish(self, reports: list[Report], new: list[Capture]) -> None:
        now = time.time()
        for report in reports:
            name = stack_id(report.stack)
            said = (report.verdict, report.cause)
            place = (name, report.mode, bool(report.series))
            if self._said.get(place) != said:
                while len(self._said) >= _SAID:  # anybody may write traces of ever new stacks
                    self._said.pop(next(iter(self._said)))
                self._said[place] = said
                self._store.add_probe(report, at=now, stack=name, evidence="trace")
                self._log.info("trace_judged", **evidence(report))
        worst: dict[str, Report] = {}
        for report in sorted(reports, key=lambda report: _WORST.index(report.verdict)):
            worst.setdefault(stack_id(report.stack), report)
        shown = list(worst.values())[: 1 + MAX_FURTHER]
        self._board.state(lambda state: state.after_traces(shown, ended=now, captures=new))

    def _retire(self, reports: list[Report]) -> None:
        """Close the history of stacks that no traced process has any more."""
        keep = {stack_id(report.stack) for report in reports}
        # One that comes back is told again.
        self._said = {place: said for place, said in self._said.items() if place[0] in keep}
        self._store.retire(
            "trace",
            keep=keep,
            emulated=self._board.view.state.emulated,
            at=time.time(),
            reason="no traced process runs it any more",
        )


def summary(processes: Mapping[str, TracedProcess]) -> list[dict[str, object]]:
    """Return what a page shows of each traced process."""
    return [
        {
            "pid": process.file.facts.pid if process.file.facts else None,
            "state": process.file.state,
            "mode": process.mode,
            "rank": process.rank,
            "captures": len(process.captures),
            "problem": process.file.problem,
        }
        for process in processes.values()
    ]
