"""`doctor --assumptions`: says of each belief whether it holds on this node."""

import sys
from collections.abc import Mapping

import msgspec

from capture_canary.config.model import Config
from capture_canary.doctor.answer import Answer
from capture_canary.doctor.beliefs import ASSUMPTIONS, Assumption
from capture_canary.doctor.evidence import Evidence, gather

WORDS = {True: "holds", False: "does not hold", None: "cannot tell"}


def run(config: Config, base: Mapping[str, str], *, as_json: bool) -> int:
    """Check all of them; return 1 where one does not hold, 3 where one cannot be told, else 0."""
    found = gather(config, base)
    answers = answer(found)
    if as_json:
        rows = [
            {
                "name": one.name,
                "belief": one.belief,
                "source": one.source,
                "answer": WORDS[said.holds],
                "why": said.why,
            }
            for one, said in answers
        ]
        report = {"emulated": found.findings.emulated, "assumptions": rows}
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    else:
        sys.stdout.write(text(found, answers))
    held = {said.holds for _, said in answers}
    return 1 if False in held else 3 if None in held else 0


def answer(found: Evidence) -> list[tuple[Assumption, Answer]]:
    """Return every assumption with its answer; a check that fails cannot tell."""
    answers = []
    for one in ASSUMPTIONS:
        try:
            answers.append((one, one.check(found)))
        except (KeyError, ValueError, OSError) as error:
            answers.append((one, Answer(None, f"the check failed: {error!r}")))
    return answers


def text(found: Evidence, answers: list[tuple[Assumption, Answer]]) -> str:
    """Return the answers as a table."""
    lines = []
    if found.findings.emulated:
        lines.append("EMULATED: this says nothing of any real NPU.")
    for one, said in answers:
        lines.append(f"{WORDS[said.holds]:<14} {one.name}: {one.belief}")
        lines.append(f"{'':<15}{said.why}")
    counts = [sum(1 for _, said in answers if said.holds is value) for value in WORDS]
    lines.append(", ".join(f"{n} {w}" for n, w in zip(counts, WORDS.values(), strict=True)))
    return "\n".join(lines) + "\n"
