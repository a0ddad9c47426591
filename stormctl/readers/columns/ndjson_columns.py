"""NDJSON logs as columns: of files whose rows are just what stormctl writes (see ``plain_rows``)."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stormctl.errors import StormctlError
from stormctl.history import Event, kinds
from stormctl.readers import meta
from stormctl.readers.columns.block import BLOCK_ROWS, CODES, ID_END, NEVER, OTHER, Block, Run
from stormctl.readers.columns.clock import LENGTH, ms_of_texts
from stormctl.readers.ndjson import SUFFIX, audit_path, earlier_path, meta_path
from stormctl.readers.plain_rows import NOTHING, NotPlain, PlainRow, Values, plain_rows
from stormctl.readers.unpack import bare_name

#: The keys of an event's data by which a check tells one event from another.
SERIAL, RESUME = "serial", "resumeId"


@dataclass(slots=True)
class _Held:
    """The rows of the runs of one block, column by column: numbers, and texts joined into one."""

    runs: list[Run] = field(default_factory=list)
    types: bytearray = field(default_factory=bytearray)
    ids: list[str] = field(default_factory=list)
    id_lengths: list[int] = field(default_factory=list)
    #: for each row the first row of its run that has the same correlation id, and such rows for those without one
    same: array[int] = field(default_factory=lambda: array("q"))
    unnamed: list[int] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    due: list[str] = field(default_factory=list)
    due_at: list[int] = field(default_factory=list)
    tokens: list[tuple[int, str]] = field(default_factory=list)
    resumes: list[tuple[int, str]] = field(default_factory=list)


class NdjsonRuns:
    """Files gathered into blocks."""

    def __init__(self) -> None:
        self._held = _Held()
        self._data = Values("data")
        self._payloads = Values("payload")

    def __len__(self) -> int:
        return len(self._held.runs)

    @property
    def full(self) -> bool:
        """Whether a block is worth making of what is held."""
        return len(self._held.types) >= BLOCK_ROWS

    def add(self, path: Path) -> bool:
        """Take a file's run in; False for one that only the reader of rows can judge."""
        try:
            about = meta.read(meta_path(path), bare_name(path).removesuffix(SUFFIX))
            if about.audit is not False and (about.audit or audit_path(path).is_file()):
                return False
            rows = plain_rows(path) if earlier_path(path) is None else None
            return rows is not None and self._take(path, about, rows)
        except (StormctlError, NotPlain, OSError):
            return False

    def block(self) -> Block:
        """The block of what is held, which is then let go."""
        import numpy as np

        held, self._held = self._held, _Held()
        created, wrong = ms_of_texts("".join(held.created))
        due = np.full(len(created), NEVER)
        if held.due_at:
            due[held.due_at], wrong_due = ms_of_texts("".join(held.due))
            wrong[held.due_at] |= wrong_due
        found = Block(
            held.runs,
            types=np.frombuffer(held.types, np.int8),
            id_ends=_ends(held.ids, held.id_lengths),
            entities=_entities(held.same, held.unnamed),
            created=created,
            due=due,
            tokens=held.tokens,
            resumes=held.resumes,
        )
        found.odd |= found.runs_of(wrong)
        return found

    def _take(self, path: Path, about: meta.Meta, rows: Sequence[PlainRow]) -> bool:
        count = len(rows)
        if [row.position for row in rows] != list(range(1, count + 1)):
            return False  # not plainly in order, so there is nothing to be won
        specs = [row.spec for row in rows]
        spec = None if specs.count(None) == count else next(at for at, one in enumerate(specs) if one is not None)
        if [row.bytes for row in rows].count(None) < count:
            return False  # whether these can be opened is not looked at here
        ids = [row.event_id for row in rows if row.event_id]
        created = [row.created_at for row in rows if row.created_at is not None]
        if len(ids) < count or len(lengths := set(map(len, ids))) > 1:
            return False
        if len(created) < count or set(map(len, created)) != {LENGTH}:
            return False
        due = [row.resume_at for row in rows if row.resume_at is not None]
        if due and set(map(len, due)) != {LENGTH}:
            return False
        held = self._held
        number = len(held.runs)
        before = len(held.types)
        types = [row.type for row in rows]
        tokens = [row.token for row in rows]
        if tokens.count(None) < count:
            held.tokens += [
                (number, token)
                for token, event_type in zip(tokens, types, strict=True)
                if token is not None and event_type == kinds.HOOK_CREATED
            ]
        odd = self._look_at_values(rows, number)
        held.runs.append(Run(str(path), about, count, self._few(rows, types, spec, about.run_id), odd=odd))
        held.types += _codes(types)
        held.ids.append("".join(ids))
        held.id_lengths.append(lengths.pop())
        first: dict[str | None, int] = {}
        named = [row.correlation_id for row in rows]
        held.same.extend(map(first.setdefault, named, range(before, before + count)))
        if None in first:
            held.unnamed.append(first[None])
        held.created.append("".join(created))
        held.due += due
        held.due_at += [before + at for at, row in enumerate(rows) if row.resume_at is not None] if due else []
        return True

    def _look_at_values(self, rows: Sequence[PlainRow], number: int) -> bool:
        """Parse what is nested in the rows, each distinct text once, note the resumes, and say whether a row has a
        number of its own."""
        payloads = [row.payload for row in rows]
        if payloads.count(NOTHING) < len(rows):
            for text in {bytes(payload) for payload in payloads if payload is not NOTHING}:
                self._payloads.of(text)
        texts = {bytes(row.data) for row in rows if row.data is not NOTHING}
        found = [self._data.data_of(text) for text in texts]
        if any(RESUME in data for data in found):
            received = (row.data for row in rows if row.type == kinds.HOOK_RECEIVED and row.data is not NOTHING)
            resumes = (self._data.data_of(bytes(raw)).get(RESUME) for raw in received)
            self._held.resumes += [(number, resume) for resume in resumes if isinstance(resume, str)]
        return any(SERIAL in data for data in found)

    def _few(self, rows: Sequence[PlainRow], types: Sequence[str], spec: int | None, run_id: str) -> tuple[Event, ...]:
        """The events that stand for a log (see ``Run.few``). ``spec`` is the first row that names a spec version."""
        wanted = {0, min(1, len(rows) - 1)}
        if spec is not None:
            wanted.add(spec)
        if types[-1] in kinds.RUN_TERMINAL:
            wanted.add(len(rows) - 1)  # an end before the last is doubtful in any case
        return tuple(self._event(rows[place], run_id) for place in sorted(wanted))

    def _event(self, row: PlainRow, run_id: str) -> Event:
        return Event(
            type=row.type,
            run_id=run_id,
            event_id=row.event_id,
            correlation_id=row.correlation_id,
            position=row.position,
            spec=row.spec,
            data={} if row.data is NOTHING else self._data.data_of(bytes(row.data)),
        )


def _ends(ids: Sequence[str], lengths: Sequence[int]) -> Any:
    """The last bytes of each event id, of runs whose ids are joined and all of one length; zeros for shorter ones."""
    import numpy as np

    if len(set(lengths)) > 1:
        return np.concatenate([_ends([joined], [length]) for joined, length in zip(ids, lengths, strict=True)])
    chars = np.frombuffer("".join(ids).encode("ascii"), np.uint8).reshape(-1, lengths[0])
    return chars[:, -ID_END:] if lengths[0] >= ID_END else np.zeros((len(chars), ID_END), np.uint8)


def _entities(same: array[int], unnamed: Sequence[int]) -> Any:
    """A number for each correlation id of each run, in the order in which they appear; -1 for none."""
    import numpy as np

    first = np.frombuffer(same, np.int64)
    numbers = np.cumsum(first == np.arange(len(first))) - 1
    found = numbers[first]
    found[np.isin(first, unnamed)] = -1
    return found


def _codes(types: Sequence[str]) -> bytes:
    """The codes of event types, a byte each."""
    try:
        return bytes(map(CODES.__getitem__, types))
    except KeyError:
        return bytes(CODES.get(event_type, OTHER) for event_type in types)


__all__ = ["RESUME", "SERIAL", "NdjsonRuns"]
