"""Writing a consequence: its mark through the view, at the index that was found, sealed with its effects."""

from __future__ import annotations

from stormctl.drain.engine import GHOST, Mark
from stormctl.drain.knobs import Guard
from stormctl.drain.tenure import Contribution, OpenWave, Target, Tenure


def write_mark(tenure: Tenure, wave: OpenWave, target: Target, *, skip: bool) -> None:
    """Seal a handler's transaction into a wave, or with ``skip`` the notice that an event needs no handler.

    Where the view has no element at the index the write makes one; where it has one that is consequenced already there
    is nothing to write.
    """
    view = tenure.view
    entries = view.read(target.doc)
    seen = view.at(target.doc, target.at)
    mark = Mark(target.doc, target.at, target.ident, target.basis)
    if seen is None:
        mark = mark._replace(add=True)
        view.seal(target.doc, wave, (*entries, GHOST))
    elif seen.consequenced:
        mark = mark._replace(elided=True)
    else:
        done = seen._replace(consequenced=True)
        view.seal(target.doc, wave, (*entries[: target.at], done, *entries[target.at + 1 :]))
    event_id = target.ident[0] or ""
    emits = tuple((doc, new) for event, doc, new in tenure.space.setup.emits if event == event_id and not skip)
    wave.contributions.append(Contribution(target, mark, () if skip else (event_id,), emits, skip))
    if tenure.knobs.guard is Guard.SEAL:
        tenure.release_guard(event_id)
    elif tenure.knobs.guard is Guard.OUTCOME:
        tenure.in_flight[event_id] = "marked"
