"""Hook conflicts: a token is refused only while somebody else holds it.

A store writes ``hook_conflict`` in place of a create when another hook owns the token. Within one run the log shows
the owner, so a refusal without one, or one that a disposal of the same run follows at once, is a race of the store
with itself (vercel/workflow #2777): the run had given the token back and was refused it. Owners in other runs are not
to be seen in one log, and nothing is said of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.history import Capture, Facet, kinds
from stormctl.sweeps.base import sweep
from stormctl.sweeps.finding import Fault, Item, Noted
from stormctl.sweeps.witness import ranked

KINDS = ("unjustified-conflict", "conflict-before-disposal")
#: What a run may have been told between a refusal and a disposal, so that the one can be the answer to the other.
_RESULTS = kinds.STEP_TERMINAL | {kinds.HOOK_RECEIVED, kinds.WAIT_COMPLETED}


@sweep("hook-conflicts", needs={Facet.CORRELATION_IDS}, kinds=KINDS)
def hook_conflicts(capture: Capture) -> Iterator[Item]:
    """Was every refused hook token really held by another hook?"""
    log = capture.log
    owners: dict[str, int] = {}
    held: dict[str, str] = {}
    refused: dict[str, int] = {}
    untold = 0
    for index, event in enumerate(log.events):
        event_type = event.type
        if event_type in _RESULTS:
            refused.clear()
        if event_type not in kinds.HOOK_TYPES:
            continue
        hook, token = event.correlation_id or "", event.token
        if event_type == kinds.HOOK_CREATED and token is not None:
            owners[token] = index
            held[hook] = token
        elif event_type == kinds.HOOK_DISPOSED:
            given_back = held.pop(hook, None)
            if given_back is not None and log[owners.get(given_back, index)].correlation_id == hook:
                owners.pop(given_back, None)
            before = refused.pop(hook, None)
            if before is not None:
                text = f"{ranked(log, log[before])} was refused a token that {ranked(log, event)} was giving back"
                at = (before, index)
                yield Fault("conflict-before-disposal", text, at, log[before].correlation_id or "")
        elif event_type == kinds.HOOK_CONFLICT:
            if token is None:
                untold += 1
                continue
            owner = owners.get(token)
            if owner is not None and log[owner].correlation_id != hook:
                refused[log[owner].correlation_id or ""] = index
            elif owner is None and event.data.get("conflictingRunId") == log.run_id and not capture.evidence.truncated:
                text = f"{ranked(log, event)} was refused a token that no hook of this run held"
                yield Fault("unjustified-conflict", text, (index,), hook)
    if untold:
        yield Noted(f"the tokens of {untold} refused hooks")
