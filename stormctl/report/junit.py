"""A storm as a JUnit file: a suite per cell, a case per attempt, so that any CI shows which ones failed and why.

A fault of the harness is ``skipped``: it says nothing about the run, and a CI would count an ``error`` as a failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from xml.etree import ElementTree as ET

from stormctl.report.lane import Lane, said
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.outcome import Outcome
from stormctl.sweeps.witness import clean

_MOST = 4_000


def junit_text(lanes: Iterable[Lane]) -> str:
    """The file of all lanes. A lane without results is a suite with one error."""
    root = ET.Element("testsuites", name="stormctl")
    for lane in lanes:
        if lane.artefact is None:
            _missing(root, lane)
            continue
        by_cell: dict[Cell, list[Attempt]] = {cell: [] for cell in lane.artefact.cells}
        for one in lane.artefact.attempts:
            by_cell[one.cell].append(one)
        for cell, attempts in by_cell.items():
            _suite(root, f"{lane.name}: {cell.label}", attempts, suspect=lane.artefact.suspect(cell))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _missing(root: ET.Element, lane: Lane) -> None:
    suite = ET.SubElement(root, "testsuite", _safe({"name": lane.name, "tests": "1", "failures": "0", "errors": "1"}))
    case = ET.SubElement(suite, "testcase", _safe({"classname": lane.name, "name": "results"}))
    ET.SubElement(case, "error", _safe({"message": lane.counts.verdict, "type": "missing"}))


def _suite(root: ET.Element, name: str, attempts: Iterable[Attempt], *, suspect: bool) -> None:
    attempts = list(attempts)
    failing = [one for one in attempts if one.outcome.gates and not suspect]
    skipped = [one for one in attempts if one.outcome is Outcome.INFRA or (one.outcome.gates and suspect)]
    suite = ET.SubElement(
        root,
        "testsuite",
        _safe(
            {
                "name": name,
                "tests": str(len(attempts)),
                "failures": str(len(failing)),
                "errors": "0",
                "skipped": str(len(skipped)),
                "time": f"{sum(one.duration_ms for one in attempts) / 1000:.3f}",
                "timestamp": min((one.started_at for one in attempts if one.started_at), default=""),
            }
        ),
    )
    for one in attempts:
        _case(suite, name, one, suspect=suspect)


def _case(suite: ET.Element, name: str, one: Attempt, *, suspect: bool) -> None:
    title = f"attempt {one.number}" + (f" ({one.run_id})" if one.run_id else "")
    case = ET.SubElement(
        suite, "testcase", _safe({"classname": name, "name": title, "time": f"{one.duration_ms / 1000:.3f}"})
    )
    why = said(one)
    if one.outcome is Outcome.INFRA:
        ET.SubElement(case, "skipped", _safe({"message": f"infra: {why}"}))
    elif one.outcome.gates and suspect:
        ET.SubElement(case, "skipped", _safe({"message": f"a control failed here; {one.outcome}: {why}"}))
    elif one.outcome.gates:
        failure = ET.SubElement(case, "failure", _safe({"type": str(one.outcome), "message": why}))
        failure.text = clean((one.error_message or why)[:_MOST])


def _safe(values: Mapping[str, str]) -> dict[str, str]:
    """Attributes that XML can hold: it has no place for control characters, not even escaped."""
    return {key: clean(value)[:_MOST] for key, value in values.items() if value}
