"""The summary of a CI step: every table of every lane, in GitHub's markdown, within what GitHub takes."""

from __future__ import annotations

from collections.abc import Sequence

from stormctl.report.facts import StormFacts
from stormctl.report.harmless import markdown
from stormctl.report.lane import Lane, said
from stormctl.report.summary import summary_text

#: GitHub refuses a step's summary of 1 MiB; what other steps wrote counts as theirs.
LIMIT = 1_000_000
#: Lines with an annotation: a runner shows ten of each kind per step.
MOST_ANNOTATIONS = 9


def report_markdown(lane: Lane, facts: StormFacts | None) -> str:
    """One lane: its verdict and all its tables."""
    if lane.artefact is None or facts is None:
        return f"**{markdown(lane.name)}: {markdown(lane.counts.verdict)}**\n"
    return summary_text(lane.artefact, facts)


def step_summary(lanes: Sequence[tuple[Lane, StormFacts | None]], limit: int = LIMIT) -> str:
    """All lanes under their names, cut between two blocks when that is too much."""
    several = len(lanes) > 1
    blocks: list[str] = []
    for lane, facts in lanes:
        if several:
            blocks.append(f"## {markdown(lane.name)}")
        blocks += report_markdown(lane, facts).rstrip("\n").split("\n\n")
    kept: list[str] = []
    room = limit - 200
    for block in blocks:
        room -= len(block.encode()) + 2
        if room < 0:
            kept.append("The rest is too large for a step's summary; see the artefact.")
            break
        kept.append(block)
    return "\n\n".join(kept) + "\n"


def annotation_lines(lanes: Sequence[Lane]) -> list[str]:
    """``::notice`` for the verdict of each lane, ``::error`` for a lane without results and for failing attempts."""
    notices, errors = [], []
    for lane in lanes:
        counts = lane.counts
        if counts.missing:
            errors.append(_command("error", lane.name, counts.verdict))
            continue
        notices.append(_command("notice", lane.name, counts.verdict))
        errors += [
            _command("error", f"{lane.name}: {one.outcome}", f"{one.cell.label} no. {one.number}: {said(one)}")
            for one in lane.failing
            if one.outcome.gates
        ]
    if len(errors) > MOST_ANNOTATIONS:
        more = len(errors) - MOST_ANNOTATIONS
        errors = [*errors[:MOST_ANNOTATIONS], _command("error", "storm", f"and {more} more; see the summary")]
    return [*notices[:MOST_ANNOTATIONS], *errors]


def _command(kind: str, title: str, message: str) -> str:
    """A command to the runner, escaped as the runner unescapes it: a text cannot begin another one."""
    return f"::{kind} title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    clean = "".join(char if char.isprintable() or char in "\r\n" else "?" for char in text)
    clean = clean.replace("##[", "# #[")  # a command of an older kind, which may stand anywhere in a line
    return clean.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
