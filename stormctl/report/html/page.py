"""Putting the page together: everything inline, everything escaped, and a policy under which nothing else runs."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

import stormctl
from stormctl.report.explained import SECONDS, explained
from stormctl.report.facts import StormFacts
from stormctl.report.html.failing import Failing, failing_attempts, failing_runs
from stormctl.report.html.tables import tables
from stormctl.report.load import Artefact
from stormctl.report.pictures import Picture, pictures, save_pictures
from stormctl.report.storm import head, remarks
from stormctl.report.style import LOOKS, look
from stormctl.report.tally import verdict_line
from stormctl.storm.plan import resolved_yaml
from stormctl.sweeps.witness import clean

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent
#: notes that are listed; what else could not be read is counted
MOST_NOTES = 20


def write_html(artefact: Artefact, facts: StormFacts, path: Path, *, seconds: float = SECONDS) -> Path:
    """Write the page and return its path; what lay there stays until the new one is whole. OSError when it cannot be.

    ``seconds`` bounds the explanations of failed runs that are worked out anew; earlier ones are kept in the artefact.
    The pictures of the page are also put under the artefact's ``plots/``, where that takes files.
    """
    drawn = _pictures(artefact)
    text = html_text(artefact, facts, seconds=seconds, drawn=drawn)
    with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        file.write(text)
    try:
        os.chmod(file.name, 0o600)  # as private as the logs that it quotes
        os.replace(file.name, path)
    except OSError:
        Path(file.name).unlink(missing_ok=True)
        raise
    with suppress(OSError):
        save_pictures(drawn, artefact.folder)
    return path


def html_text(
    artefact: Artefact, facts: StormFacts, *, seconds: float = SECONDS, drawn: Sequence[Picture] | None = None
) -> str:
    """The page as text, with the pictures given or else those of the artefact.

    The same artefact gives the same page, but for explanations that there was no time for.
    """
    from markupsafe import Markup

    style, script = (HERE / "page.css").read_text(encoding="utf-8"), (HERE / "page.js").read_text(encoding="utf-8")
    attempts, failed = failing_attempts(artefact)
    failing = failing_runs(artefact, attempts, explained(artefact, attempts, seconds=seconds))
    shown_pictures = list(_shown(_pictures(artefact) if drawn is None else drawn))
    shown = tables(artefact, facts)
    return (
        _environment()
        .from_string((HERE / "page.html.j2").read_text(encoding="utf-8"))
        .render(
            policy=_policy(style, script),
            style=Markup(style),
            script=Markup(script),
            version=stormctl.__version__,
            name=artefact.name,
            folder=artefact.folder.name,
            verdict=verdict_line(artefact).split("; "),
            head=head(artefact),
            counts=_counts(artefact),
            sections=_sections(pictures=bool(shown_pictures), failing=bool(failing), tables=bool(shown)),
            remarks=remarks(artefact),
            pictures=shown_pictures,
            failing=failing,
            anchors={run.run_id: run.anchor for run in failing if run.run_id},
            failing_text=_failing_text(failing, failed),
            tables=shown,
            configuration=list(_configuration(artefact)),
            notes=_notes((*artefact.notes, *artefact.unreadable, *facts.notes)),
        )
    )


def _environment() -> Environment:
    from jinja2 import Environment, StrictUndefined

    made = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_harmless
    )
    made.filters["shorten"] = _shorten
    return made


def _harmless(value: Any) -> Any:
    """Whatever a log put into a text: no control characters, none that turn the direction of what follows."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return "\n".join(map(clean, value.split("\n")))
    return value


def _shorten(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 3] + "..."


def _failing_text(failing: Sequence[Failing], failed: int) -> str:
    shown = f"{failed} did not" if len(failing) == failed else f"{len(failing)} of {failed} are shown"
    told = sum(bool(run.said.text) for run in failing)
    if told == len(failing):
        return f"{shown}."
    return f"{shown}, {told} with an explanation. The next report explains more: what was worked out is kept."


def _policy(style: str, script: str) -> str:
    """Only this style and this script, pictures from the page itself, and nothing from or to anywhere else."""
    return (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _pictures(artefact: Artefact) -> list[Picture]:
    return list(pictures(artefact)) if artefact.attempts else []


def _shown(drawn: Sequence[Picture]) -> Iterator[dict[str, Any]]:
    from markupsafe import Markup

    from stormctl.report.html.svg import inline_svg

    for one in drawn:
        svg = inline_svg(one.figure, one.name, *_told(one))
        yield {"name": one.name, "title": one.title, "how": one.how, "svg": Markup(svg)}


def _told(one: Picture) -> tuple[str, str]:
    """A picture's text alternative: its title, and what it shows in words."""
    return one.title, _shorten(clean(one.text), 1_500)


def _counts(artefact: Artefact) -> list[dict[str, Any]]:
    counts = Counter(look(one.outcome).word for one in artefact.attempts)
    return [{"word": one.word, "count": counts[one.word]} for one in LOOKS if counts[one.word]]


def _sections(*, pictures: bool, failing: bool, tables: bool) -> list[dict[str, str]]:
    there = {
        "pictures": ("Pictures", pictures),
        "failing": ("Runs that did not complete", failing),
        "tables": ("Tables", tables),
        "configuration": ("Configuration", True),
    }
    return [{"key": key, "title": title} for key, (title, shown) in there.items() if shown]


def _configuration(artefact: Artefact) -> Iterator[dict[str, str]]:
    if artefact.plan is not None:
        yield {"title": "The plan as it was run", "text": resolved_yaml(artefact.plan)}
    if artefact.env:
        yield {"title": "The machine and the versions", "text": json.dumps(artefact.env, indent=2, ensure_ascii=False)}


def _notes(notes: tuple[str, ...]) -> list[str]:
    found = list(dict.fromkeys(notes))
    more = len(found) - MOST_NOTES
    return [*found[:MOST_NOTES], f"and {more} more"] if more > 0 else found
