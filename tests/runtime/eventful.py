"""Events for the tests of views: by slot, by seq, or with ids alone."""

from __future__ import annotations

from stormctl.history import Event, ids, kinds
from tests.runtime.driving import RUN

START = ids.ulid_ms(RUN) or 0


def plain(ms: int, *, type: str = kinds.RUN_STARTED, random: int = 0, position: int | None = None) -> Event:
    """An event minted so many milliseconds after the run was."""
    return Event(type, RUN, f"evnt_{ids.compose(START + ms, random)}", position=position, created_at=START + ms)


def seqs(*positions: int | None) -> tuple[Event, ...]:
    """Events with these seqs, minted in the order given."""
    return tuple(plain(index, random=index, position=position) for index, position in enumerate(positions))


def slots(*held: int) -> tuple[Event, ...]:
    """Events on these slots."""
    return tuple(
        Event(kinds.RUN_STARTED, RUN, ids.slot_id(slot), position=slot, created_at=START + slot) for slot in held
    )
