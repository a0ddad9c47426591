"""Our own Parquet files as columns, block by block, each of whole runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from stormctl.errors import StormctlError
from stormctl.history import Event, kinds
from stormctl.readers import meta, parquet
from stormctl.readers.columns.block import BLOCK_ROWS, CODES, ID_END, NEVER, OTHER, Block, Run
from stormctl.readers.columns.ndjson_columns import RESUME, SERIAL
from stormctl.readers.plain_rows import NotPlain, Values
from stormctl.readers.tables.parquet_rows import open_parquet

#: A run that is longer is for the reader of rows; so many are held at most.
MAX_RUN_ROWS = 1 << 21
_OF_THE_FEW = ("type", "event_id", "correlation_id", "position", "spec", "data")
_TERMINAL = tuple(CODES[event_type] for event_type in sorted(kinds.RUN_TERMINAL))


class NotColumns(Exception):
    """Something in the file that only the reader of rows can judge."""


def parquet_blocks(path: Path) -> Iterator[Block]:
    """The runs of a file, in its order. NotColumns where only the reader of rows knows what the file holds: then
    nothing that came before counts, for that reader may stop at an earlier place."""
    import pyarrow as pa

    try:
        with _plain_memory():
            about = parquet.metas(path)
            file = open_parquet(path)
            if not file.schema_arrow.remove_metadata().equals(parquet.schema(pa).remove_metadata()):
                raise NotColumns
            reader = _Reader(path, about)
            for batch in file.iter_batches(batch_size=BLOCK_ROWS, use_threads=False):
                batch.validate(full=True)
                yield from reader.take(batch)
            yield from reader.rest()
    except (StormctlError, NotPlain, OSError, pa.lib.ArrowException, ValueError, OverflowError, TypeError, LookupError):
        raise NotColumns from None


@contextmanager
def _plain_memory() -> Iterator[None]:
    """Arrow takes its memory from the system meanwhile. Its own pools first reserve and clear a large piece, which for
    300,000 events took twice as long as reading and checking them."""
    import pyarrow as pa

    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


class _Reader:
    """The batches of one file as blocks; what is held is the beginning of a run that goes on."""

    def __init__(self, path: Path, about: Any) -> None:
        self._path = path
        self._about = about
        self._ended: set[str] = set()
        self._held: Any = None
        self._runs = self._rows = 0
        self._data = Values("data", inside=False)
        self._payloads = Values("payload", inside=False)

    def take(self, batch: Any) -> Iterator[Block]:
        """One more batch: a block of the runs that end in it."""
        table = _joined(self._held, batch)
        bounds = _bounds(table)
        whole = bounds[-2] if len(bounds) > 1 else 0
        self._held = table.slice(whole)
        if len(self._held) > MAX_RUN_ROWS:
            raise NotColumns
        if whole:
            yield self._block(table.slice(0, whole), bounds[:-1])

    def rest(self) -> Iterator[Block]:
        """The last run."""
        if self._held is None or not len(self._held):
            raise NotColumns  # a file without events
        yield self._block(self._held, [0, len(self._held)])

    def _block(self, table: Any, bounds: Sequence[int]) -> Block:
        import numpy as np
        import pyarrow.compute as pc

        columns = {name: table.column(name).combine_chunks() for name in table.column_names}
        columns = {name: _plain(column) for name, column in columns.items()}
        if any(columns[name].null_count for name in ("run_id", "type")) or columns["bytes"].null_count < len(table):
            raise NotColumns
        positions = _numbers(columns["position"])
        if positions.min() < 0 or _refused(columns["spec"]):
            raise NotColumns
        types = _codes(columns["type"], pc, np)
        created, due = _numbers(columns["created_at"], time=True), _numbers(columns["resume_at"], time=True)
        odd, resumes = self._look_at_data(columns, types, bounds)
        names = columns["run_id"].take(_array(bounds[:-1])).to_pylist()
        few = _few(columns, types, bounds, names, self._data)
        runs = []
        for number, (name, begin, end) in enumerate(zip(names, bounds, bounds[1:], strict=False)):
            if name in self._ended or not name.isascii():
                raise NotColumns
            self._ended.add(name)
            given = self._about.get(name)
            found = meta.from_json(given, "its metadata", name) if given is not None else meta.Meta(name)
            found = replace(found, run_id=name)  # the rows say whose they are
            strange = number in odd or not (positions[begin:end] > 0).all()
            runs.append(
                Run(str(self._path), found, end - begin, few[number], strange, self._runs + number, self._rows + begin)
            )
        self._runs += len(runs)
        self._rows += len(table)
        run_of_rows = np.repeat(np.arange(len(runs)), np.diff(bounds))
        hooks = np.flatnonzero(types == CODES[kinds.HOOK_CREATED])
        tokens = columns["token"].take(_array(hooks)).to_pylist()
        return Block(
            runs,
            positions=positions,
            types=types,
            id_ends=_id_ends(columns["event_id"]),
            entities=_entities(columns["correlation_id"], run_of_rows),
            created=created,
            due=due,
            tokens=[
                (int(run), token) for run, token in zip(run_of_rows[hooks], tokens, strict=True) if token is not None
            ],
            resumes=resumes,
        )

    def _look_at_data(
        self, columns: dict[str, Any], types: Any, bounds: Sequence[int]
    ) -> tuple[set[int], list[tuple[int, str]]]:
        """Parse what is nested in the rows: the runs that number their rows themselves, and the resumes."""
        import numpy as np

        if columns["payload"].null_count < len(types):
            for text in columns["payload"].drop_null().to_pylist():
                self._payloads.of(text)
        odd: set[int] = set()
        resumes: list[tuple[int, str]] = []
        if columns["data"].null_count == len(types):
            return odd, resumes
        coded = columns["data"].dictionary_encode()
        distinct = [self._data.data_of(text) for text in coded.dictionary.to_pylist()]
        telling = [number for number, data in enumerate(distinct) if SERIAL in data or RESUME in data]
        if telling:
            indices = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            for row in np.flatnonzero(np.isin(indices, telling)):
                run = int(np.searchsorted(np.array(bounds), row, side="right")) - 1
                data = distinct[indices[row]]
                if SERIAL in data:
                    odd.add(run)
                if types[row] == CODES[kinds.HOOK_RECEIVED] and isinstance(data.get(RESUME), str):
                    resumes.append((run, data[RESUME]))
        return odd, resumes


def _joined(held: Any, batch: Any) -> Any:
    import pyarrow as pa

    table = pa.Table.from_batches([batch])
    return table if held is None or not len(held) else pa.concat_tables([held, table]).unify_dictionaries()


def _bounds(table: Any) -> list[int]:
    """The first row of each run, and the number of rows."""
    import numpy as np

    names = table.column("run_id").combine_chunks()
    if names.null_count:
        raise NotColumns
    codes = names.indices.to_numpy(zero_copy_only=False) if hasattr(names, "indices") else None
    if codes is None:
        raise NotColumns
    changes = np.flatnonzero(codes[1:] != codes[:-1]) + 1
    return [0, *changes.tolist(), len(table)]


def _plain(column: Any) -> Any:
    """A column that is not cut from a longer one, so that its buffers begin where it does."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column


def _numbers(column: Any, *, time: bool = False) -> Any:
    """A column of numbers, with ``NEVER`` for a time that is not there. NotColumns for one that holds it itself."""
    import pyarrow as pa

    if time:
        column = column.cast(pa.int64())
    elif column.null_count:
        raise NotColumns
    values = column.fill_null(0).to_numpy(zero_copy_only=False)
    if len(values) and values.min() == NEVER:
        raise NotColumns
    return column.fill_null(NEVER).to_numpy(zero_copy_only=False)


def _refused(specs: Any) -> bool:
    """Whether a spec version is beyond what a row may hold."""
    if specs.null_count == len(specs):
        return False
    return bool(specs.fill_null(0).to_numpy(zero_copy_only=False).min() == NEVER)


def _codes(column: Any, pc: Any, np: Any) -> Any:
    words = column.dictionary.to_pylist()
    if None in words:
        raise NotColumns
    return np.array([CODES.get(word, OTHER) for word in words], np.int8)[column.indices.to_numpy(zero_copy_only=False)]


def _id_ends(texts: Any) -> Any:
    """The last bytes of each event id; zeros for a shorter one, and for none."""
    import numpy as np

    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    chars = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    sizes = np.diff(ends)
    whole = sizes >= ID_END
    if whole.all() and (sizes == sizes[0]).all():
        return chars[ends[0] : ends[-1]].reshape(len(texts), sizes[0])[:, -ID_END:]
    found = np.zeros((len(texts), ID_END), np.uint8)
    found[whole] = chars[(ends[1:][whole] - ID_END)[:, None] + np.arange(ID_END)]
    return found


def _entities(texts: Any, run: Any) -> Any:
    """A number for each correlation id of each run; -1 for none."""
    import numpy as np

    coded = texts.dictionary_encode()
    found = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    count = len(coded.dictionary)
    named = np.flatnonzero(found >= 0)
    owner = np.zeros(count, np.int64)
    owner[found[named]] = run[named]
    if (owner[found[named]] != run[named]).any():  # one id in two runs is two entities
        _, numbers = np.unique(run[named] * count + found[named], return_inverse=True)
        found = np.full(len(texts), -1)
        found[named] = numbers
    return found


def _array(numbers: Any) -> Any:
    import pyarrow as pa

    return pa.array(numbers, pa.int64())


def _few(
    columns: dict[str, Any], types: Any, bounds: Sequence[int], names: Sequence[str], values: Values
) -> list[tuple[Event, ...]]:
    """The events that stand for each run (see ``Run.few``)."""
    import numpy as np

    firsts, ends = np.array(bounds[:-1]), np.array(bounds[1:])
    wanted = {*firsts.tolist(), *np.minimum(firsts + 1, ends - 1).tolist()}
    for rows, side in (
        (np.flatnonzero(columns["spec"].is_valid().to_numpy(zero_copy_only=False)), 0),
        (np.flatnonzero(np.isin(types, _TERMINAL)), -1),
    ):
        begins, stops = np.searchsorted(rows, firsts), np.searchsorted(rows, ends)
        some = stops > begins
        wanted.update((rows[begins[some]] if side == 0 else rows[stops[some] - 1]).tolist())
    places = sorted(wanted)
    taken = {name: columns[name].take(_array(places)).to_pylist() for name in _OF_THE_FEW}
    runs = np.searchsorted(np.array(bounds), places, side="right") - 1
    found: list[list[Event]] = [[] for _ in names]
    for run, event_type, event_id, correlation_id, position, spec, data in zip(runs, *taken.values(), strict=True):
        event = Event(
            type=event_type,
            run_id=names[run],
            event_id=event_id,
            correlation_id=correlation_id,
            position=position,
            spec=spec,
            data={} if data is None else values.data_of(data),
        )
        found[run].append(event)
    return [tuple(events) for events in found]


__all__ = ["NotColumns", "parquet_blocks"]
