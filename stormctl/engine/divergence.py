"""Divergences, put into words: which command was expected, at which position, and what the workflow did instead.

Upstream reports the same disagreements (vercel/workflow #3139, #4021); ours name expected, position and actual first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stormctl.engine.door import Divergence
from stormctl.engine.prepared import Prepared
from stormctl.history import ids
from stormctl.history.kinds import STEP_CREATED
from stormctl.history.tokens import token_digest

if TYPE_CHECKING:
    from stormctl.engine.context import Context, Item


def label_of(kind: str, name: str | None) -> str:
    """``step:finalizeStep``, or just the kind where there is no name."""
    return f"{kind}:{name}" if name else kind


def make(
    context: Context, reason: str, event: Prepared, index: int, actual: str, sentence: str, expected: str | None = None
) -> Divergence:
    """A divergence at an event; ``sentence`` says what disagreed, the event is named in front of it.

    ``expected`` is what the event belongs to, by default its kind and name.
    """
    stored = event.event
    rank = None if stored.correlation_id is None else context.identity.rank(stored.correlation_id)
    at = stored.position if stored.position is not None else index + 1
    return Divergence(
        reason=reason,
        index=index,
        position=stored.position,
        event_id=stored.event_id,
        event_type=stored.type,
        rank=rank,
        expected=label_of(stored.kind, event.name) if expected is None else expected,
        actual=actual,
        text=f"{stored.type} at position {at} {sentence}",
    )


def name(context: Context, event: Prepared, index: int, item: Item) -> Divergence:
    """A step event whose name is not that of the step which was drawn with its id."""
    return make(
        context,
        "name",
        event,
        index,
        label_of(item.kind, item.name),
        f"belongs to {event.name}, but with rank {item.rank} the workflow calls {item.name}",
    )


def wrong_type(context: Context, event: Prepared, index: int, item: Item) -> Divergence:
    """An event whose type its entity cannot have."""
    return make(
        context,
        "type",
        event,
        index,
        label_of(item.kind, item.name),
        f"is no event that a {item.kind} can have",
    )


def resume_at(context: Context, event: Prepared, index: int, item: Item) -> Divergence:
    """A completed wait that was to end at another time than the wait which was drawn with its id."""
    return make(
        context,
        "resume-at",
        event,
        index,
        f"wait until {item.resume_at}",
        f"ends a wait until {event.event.resume_at}, but the workflow waits until {item.resume_at}",
        f"wait until {event.event.resume_at}",
    )


def token(context: Context, event: Prepared, index: int, item: Item) -> Divergence:
    """A hook event that belongs to another token than the hook which was drawn with its id."""
    return make(
        context,
        "token",
        event,
        index,
        _hook(item.token),
        "belongs to another token than the hook that the workflow created with its id",
        _hook(event.event.token),
    )


def _hook(token: str | None) -> str:
    """A hook by the digest of its token, which is a secret."""
    return "hook" if token is None else f"hook with token digest {token_digest(token)[:8]}"


def attributes(context: Context, event: Prepared, index: int, item: Item) -> Divergence:
    """An attribute write whose changes are not those that the workflow asks for."""
    return make(
        context,
        "attributes",
        event,
        index,
        label_of(item.kind, item.name),
        "sets other attributes than the workflow does",
    )


def unconsumed(context: Context, event: Prepared, index: int) -> Divergence:
    """An event that nobody asked for before the grace period ended."""
    if event.type == STEP_CREATED and _settled(context, event):
        sentence = f"creates {event.name} too late: the workflow has its result already"
        return make(context, "item", event, index, "settled", sentence)
    item = _pending_with(context, event)
    actual = "nothing" if item is None else label_of(item.kind, item.name)
    instead = (
        "the workflow asks for nothing with its id" if item is None else f"with its id the workflow asks for {actual}"
    )
    return make(context, "unconsumed", event, index, actual, f"was not consumed: {instead}")


def stranded(context: Context, event: Prepared, index: int) -> Divergence:
    """An event still set aside when the replay had finished."""
    return make(
        context, "stranded", event, index, "finished", "was set aside, and the replay finished without asking for it"
    )


def _settled(context: Context, event: Prepared) -> bool:
    """Whether the workflow drew the event's id and is done with it."""
    drawn = event.correlation_id
    return drawn not in context.items and any(draw[3] == drawn for draw in context.draws)


def _pending_with(context: Context, event: Prepared) -> Item | None:
    """What the workflow has pending with the event's id, whatever its kind."""
    body = event.event.body
    if body is None:
        return None
    if event.correlation_id in context.items or ids.is_count(body):  # counts of two kinds have nothing in common
        return context.items.get(event.correlation_id)
    for item in context.items.values():
        if ids.split(item.correlation_id)[1] == body:
            return item
    return None
