"""A comparison for a terminal (80 columns, without colour), as markdown, and as JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from stormctl.report.contrast import ALPHA, CellContrast, Contrast, p_text
from stormctl.report.load import Artefact
from stormctl.report.markdown import escape, table
from stormctl.report.tables import head_table
from stormctl.stats import Difference, Needed, Rate
from stormctl.sweeps.witness import clean

SCHEMA = "stormctl.diff/1"
#: what the numbers are, under every table
METHODS = (
    "Rates: 95 % Wilson. Points: old - new with the 95 % interval of Miettinen and Nurminen, over cells with "
    "Mantel-Haenszel weights. p: Boschloo's exact test, over cells the exact conditional one, two-sided; Holm: p "
    "adjusted for the number of cells."
)


def contrast_text(found: Contrast, width: int) -> str:
    """The comparison as plain text."""
    stream = io.StringIO()
    console = Console(file=stream, width=width, highlight=False, color_system=None, soft_wrap=False)
    for line in _head(found):
        console.print(Text(clean(line)))
    console.print(Text(clean(_capital(found.sentence)), style="bold"))
    console.print()
    console.print(_table(found))
    for one in found.cells:
        if len(found.cells) > 1:
            console.print(Text(clean(f"{one.where}: {found.cell_sentence(one)}")))
    for line in _warned(found):
        console.print(Text(clean(f"warning: {line}")))
    console.print()
    console.print(Text(METHODS))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def contrast_markdown(found: Contrast) -> str:
    """The comparison for a comment or a step summary."""
    header = ("cell", "old", "new", "points, old - new (95 %)", "p", "Holm", "reading")
    rows = [
        (
            one.where + _mark(one),
            one.pairing.old.rate,
            one.pairing.new.rate,
            _points(one.difference),
            p_text(one.p),
            p_text(one.adjusted),
            _reading(found, one),
        )
        for one in found.cells
    ]
    pooled = found.pooled
    if len(found.cells) > 1:
        rows.append(
            (
                "all cells",
                pooled.difference.first,
                pooled.difference.second,
                _points(pooled.difference),
                p_text(pooled.p),
                "-",
                str(found.verdict),
            )
        )
    parts = [f"**{escape(_capital(found.sentence))}**", "  \n".join(map(escape, _head(found)))]
    parts.append(table(header, rows, words=1))
    warned = list(_warned(found))
    if warned:
        parts.append("\n".join(f"- {escape(line)}" for line in warned))
    parts.append(f"<sub>{escape(METHODS)}</sub>")
    return "\n\n".join(parts) + "\n"


def contrast_json(found: Contrast) -> str:
    """The comparison for programs."""
    sides, pooled = found.sides, found.pooled
    document = {
        "schema": SCHEMA,
        "outcome": found.outcome,
        "alpha": ALPHA,
        "verdict": str(found.verdict),
        "sentence": found.sentence,
        "old": _storm(sides.old),
        "new": _storm(sides.new),
        "interleaved": sides.took_turns,
        "names": list(sides.names),
        "cells": [
            {
                "scenario": one.pairing.scenario,
                "world": one.pairing.world,
                "arms": list(one.pairing.arms),
                "control": one.pairing.control,
                "excluded": one.excluded,
                "old": _side(one.pairing.old.rate, one.pairing.old.infra, one.pairing.old.flagged),
                "new": _side(one.pairing.new.rate, one.pairing.new.infra, one.pairing.new.flagged),
                "difference": _difference(one.difference),
                "p": one.p,
                "p_holm": one.adjusted,
                "needed": _needed(one.needed),
                "sentence": found.cell_sentence(one),
            }
            for one in found.cells
        ],
        "pooled": {
            "old": _rate(pooled.difference.first),
            "new": _rate(pooled.difference.second),
            "difference": _difference(pooled.difference),
            "p": pooled.p,
            "needed": _needed(pooled.needed),
        },
        "drift": [
            {
                "arm": one.arm,
                "cell": one.where,
                "earlier": _rate(one.halves.earlier),
                "later": _rate(one.halves.later),
                "p_holm": one.p,
            }
            for one in found.drifts
        ],
        "warnings": list(found.warnings),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _head(found: Contrast) -> Iterator[str]:
    old, new = found.sides.old, found.sides.new
    arms = tuple(dict.fromkeys(one.arms for one in found.sides.pairings))
    if found.sides.one:
        yield f"{_title(old)}: old is {arms[0][0]}, new is {arms[0][1]}"
        return
    several = len(arms) > 1
    yield f"A (old): {_title(old)}" + ("" if several else f", {arms[0][0]}")
    yield f"B (new): {_title(new)}" + ("" if several else f", {arms[0][1]}")


def _title(artefact: Artefact) -> str:
    seed = f", seed {artefact.plan.seed}" if artefact.plan else ""
    return f"{artefact.name}{seed}, {artefact.folder.name}"


def _table(found: Contrast) -> Table:
    made = head_table()
    made.add_column("cell", overflow="fold", ratio=1)
    made.add_column(f"{found.outcome} (95 %)", justify="right", no_wrap=True)
    made.add_column("points (95 %)", justify="right", no_wrap=True)
    made.add_column("p", justify="right", no_wrap=True)
    made.add_column("Holm", justify="right", no_wrap=True)
    several = len(dict.fromkeys(one.arms for one in found.sides.pairings)) > 1
    for one in found.cells:
        arm = f", {one.pairing.arms[0]}" if several else ""
        made.add_row(Text(clean(f"{one.where}{arm}{_mark(one)}"), style="bold"))
        made.add_row(Text("  old"), str(one.pairing.old.rate))
        made.add_row(
            Text("  new"),
            str(one.pairing.new.rate),
            _points(one.difference),
            p_text(one.p),
            p_text(one.adjusted),
        )
    if len(found.cells) > 1:
        made.add_row(Text("all cells that decide", style="bold"))
        made.add_row(Text("  old"), str(found.pooled.difference.first))
        made.add_row(
            Text("  new"),
            str(found.pooled.difference.second),
            _points(found.pooled.difference),
            p_text(found.pooled.p),
        )
    return made


def _mark(one: CellContrast) -> str:
    if one.excluded:
        return f" ({one.excluded})"
    return " (control)" if one.pairing.control else ""


def _reading(found: Contrast, one: CellContrast) -> str:
    if one.excluded or one.pairing.control:
        return one.excluded or "control"
    return {1: "old has more", -1: "new has more", 0: "not told apart"}[found.sign_of(one)]


def _warned(found: Contrast) -> Iterator[str]:
    yield from map(str, found.drifts)
    yield from found.warnings


def _points(one: Difference) -> str:
    return "-" if one.value is None else str(one).replace(" points", "")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:] if text.startswith(("not ", "nothing ")) else text


def _storm(artefact: Artefact) -> dict[str, Any]:
    return {
        "folder": str(artefact.folder),
        "plan": artefact.name,
        "seed": artefact.plan.seed if artefact.plan else None,
        "reason": artefact.reason,
    }


def _rate(rate: Rate) -> dict[str, Any]:
    return {"k": rate.k, "n": rate.n, "share": rate.share, "lo": rate.lo, "hi": rate.hi}


def _side(rate: Rate, infra: int, flagged: int) -> dict[str, Any]:
    return {**_rate(rate), "infra": infra, "flagged": flagged}


def _difference(one: Difference) -> dict[str, Any]:
    return {"value": one.value, "lo": one.lo, "hi": one.hi, "method": "miettinen-nurminen"}


def _needed(one: Needed | None) -> dict[str, Any] | None:
    return None if one is None else {"attempts": one.n, "power": one.power, "exact": one.exact}
