"""A schedule as one HTML file that needs nothing else, and as JSON.

The page is tables: a row for each thing that happened, a column for each actor, so that it is read aloud, copied and
searched as well as it is seen. It asks for no network, and its policy allows none.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import stormctl
from stormctl.sim.show.lanes import Lanes, Row, extent
from stormctl.sim.show.picture import Picture, size_of

SCHEMA = "stormctl.schedule/1"

_STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #1c1e21; --dim: #62676e; --line: #d5d8dc; --race: #b3261e;
  --hole: #8a5a00; --soft: #f4f5f7 }
@media (prefers-color-scheme: dark) { :root { --back: #16181b; --text: #e4e6e9; --dim: #9aa0a8; --line: #3a3f45;
  --race: #ff8a80; --hole: #e8b450; --soft: #202327 } }
body { margin: 1.5rem auto; max-width: 90rem; padding: 0 1rem; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif }
h1 { font-size: 1.3rem; overflow-wrap: anywhere } h2 { font-size: 1.05rem; margin-top: 2rem }
.story { max-width: 46rem; font-size: 1.05rem }
.beside { display: flex; flex-wrap: wrap; gap: 1.5rem; align-items: flex-start }
.scroll { overflow-x: auto; max-width: 100% }
table { border-collapse: collapse; font: 13px/1.4 ui-monospace, monospace }
caption { text-align: left; font: 600 14px system-ui, sans-serif; padding-bottom: .4rem }
th, td { text-align: left; padding: .15rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap;
  vertical-align: top; font-weight: 400 }
thead th { font-weight: 600; border-bottom: 2px solid var(--line); position: sticky; top: 0; background: var(--back) }
td + td, th + th, th + td { border-left: 1px solid var(--soft) }
.n { text-align: right; color: var(--dim); font-variant-numeric: tabular-nums }
.behind .n { color: var(--race); font-weight: 700 }
.raced { outline: 2px solid var(--race); outline-offset: -2px; font-weight: 600 }
.hole { display: inline-block; min-width: 1.1em; text-align: center; border: 1px dashed var(--hole);
  color: var(--hole); border-radius: 3px; padding: 0 .2em }
pre { background: var(--soft); padding: .7rem .9rem; overflow-x: auto; font: 13px/1.5 ui-monospace, monospace }
.dim { color: var(--dim) }
"""


def schedule_json(found: Picture) -> str:
    """The picture as JSON, schema ``stormctl.schedule/1``."""
    return json.dumps(schedule_data(found), indent=2, ensure_ascii=False)


def schedule_data(found: Picture) -> dict[str, Any]:
    """The picture as data for JSON."""
    return {
        "schema": SCHEMA,
        "stormctl": stormctl.__version__,
        "model": found.model,
        "digest": found.digest,
        "token": found.token,
        "script": found.script.splitlines(),
        "replay": found.replay,
        "verdict": "violation" if found.problems else "pass",
        "problems": [
            {
                "oracle": one.oracle,
                "signature": one.signature,
                "text": one.text,
                "positions": list(one.positions),
            }
            for one in found.problems
        ],
        "preemptions": found.preemptions,
        "faults": found.faults,
        "turns": found.turns,
        "proof": found.proof or None,
        "story": list(found.story),
        "race": None if found.race is None else [found.race.first, found.race.second],
        "lanes": _lanes(found.lanes),
        "passing": None if found.passing is None else _lanes(found.passing) | {"choice": found.passing_choice},
    }


def _lanes(lanes: Lanes) -> dict[str, Any]:
    rows = [
        {
            "lane": row.lane,
            "text": row.text,
            "position": row.position,
            "saw": list(row.saw),
            "missed": list(row.missed),
            "raced": row.raced,
            "overtaken": behind,
        }
        for row, behind in zip(lanes.rows, lanes.overtaken, strict=True)
    ]
    return {"names": list(lanes.names), "rows": rows}


def schedule_page(found: Picture | Sequence[Picture], words: str = "") -> str:
    """The picture, or several, or none, as one HTML file; ``words`` stand before them."""
    pictures = [found] if isinstance(found, Picture) else list(found)
    style = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{style}'"
    title = pictures[0].title if len(pictures) == 1 else f"{len(pictures)} schedules"
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{_STYLE}</style></head><body><main>",
            *([f'<p class="story">{escape(words)}</p>'] if words else []),
            *(line for one in pictures for line in _picture(one)),
            f'<p class="dim">stormctl {escape(stormctl.__version__)}</p>',
            "</main></body></html>",
            "",
        )
    )


def _picture(found: Picture) -> Iterator[str]:
    yield f"<article><h1>{escape(found.title)}</h1>"
    if found.story:
        yield f'<p class="story">{escape(" ".join(found.story))}</p>'
    size = size_of(found)
    yield f'<p class="dim">{escape("; ".join(part for part in (size, found.proof) if part))}</p>'
    yield '<div class="beside">'
    yield from _table(found.lanes, "What happened")
    if found.passing is not None:
        yield from _table(found.passing, "The nearest schedule that goes well")
    yield "</div>"
    yield '<p class="dim">From top to bottom in the order in which it happened; the number is the place in the log, red'
    yield 'where something that stands behind it was there sooner. <span class="hole">4</span> is what a read did not'
    yield "see. The two that raced are boxed.</p>"
    if len(found.problems) > 1:
        yield "<h2>What is wrong</h2><ul>"
        yield from (f"<li>{escape(one.signature)}: {escape(one.text)}</li>" for one in found.problems)
        yield "</ul>"
    yield "<h2>Play it again</h2>"
    yield f"<pre>{escape(found.replay)}</pre>"
    if found.script:
        yield f"<h2>As a script</h2><pre>{escape(found.script)}</pre>"
    yield "</article>"


def _table(lanes: Lanes, caption: str) -> Iterator[str]:
    yield f'<div class="scroll"><table><caption>{escape(caption)}</caption><thead><tr><th scope="col" class="n">#</th>'
    yield from (f'<th scope="col">{escape(name)}</th>' for name in lanes.names)
    yield "</tr></thead><tbody>"
    for row, behind in zip(lanes.rows, lanes.overtaken, strict=True):
        place = "" if row.position is None else f"{row.position}{' &lt;' if behind else ''}"
        at = lanes.names.index(row.lane)
        cells = "<td></td>" * at + _cell(row) + "<td></td>" * (len(lanes.names) - at - 1)
        yield f'<tr{_class("behind" if behind else "")}><th scope="row" class="n">{place}</th>{cells}</tr>'
    yield "</tbody></table></div>"


def _cell(row: Row) -> str:
    seen = ""
    if row.missed:
        parts = iter(sorted(row.missed))
        words = escape(extent(row.saw, row.missed)).split("( )")
        seen = words[0] + "".join(
            f'<span class="hole" title="not seen">{next(parts)}</span>{rest}' for rest in words[1:]
        )
    elif row.saw:
        seen = escape(extent(row.saw, ()))
    return f"<td{_class('raced' if row.raced else '')}>{escape(row.text)}{' ' + seen if seen else ''}</td>"


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""
