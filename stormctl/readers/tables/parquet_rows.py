"""The rows of a Parquet file, a thousand at a time: pyarrow is imported when a Parquet file is opened."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any

from stormctl.errors import StormctlError
from stormctl.readers.tables.paths import Row
from stormctl.readers.tables.sources import Table
from stormctl.readers.tables.values import Ms
from stormctl.readers.text import damaged, unreadable

BATCH_ROWS = 1024
#: What a file's footer may take, and how many parts it may name.
_FOOTER_BYTES = 64 << 20
_FOOTER_PARTS = 1_000_000
#: A row group is read column by column; one that is larger than this when unpacked is refused.
MAX_GROUP_BYTES = 8 << 30
_MAX_COLUMNS = 4096


def parquet_table(path: Path) -> Table:
    """The table in a Parquet file."""
    with reading(path):
        columns = frozenset(open_parquet(path).schema_arrow.names)
    return Table(columns, parquet_rows(path))


def parquet_rows(path: Path) -> Iterator[Row]:
    """Its rows, in the file's order. Columns of times are in milliseconds."""
    number = 0
    with reading(path):
        for names, batch in batches(path):
            for cells in zip(*batch, strict=True):
                number += 1
                row = {name: cell for name, cell in zip(names, cells, strict=True) if cell is not None}
                yield Row(row, f"row {number} of {path.name}")


def batches(
    path: Path, columns: list[str] | None = None, ranges: Sequence[tuple[int, int]] | None = None
) -> Iterator[tuple[list[str], list[list[Any]]]]:
    """Names and values of the columns, a batch of rows at a time: of all rows, or of those in some ranges (first row
    and the one behind the last), which rise."""
    file = open_parquet(path)
    behind = 0
    for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=columns, use_threads=False):
        names = list(batch.schema.names)
        begin, behind = behind, behind + batch.num_rows
        for part in [batch] if ranges is None else _parts(batch, begin, ranges):
            if part.num_rows:
                yield names, [_values(part.column(place)) for place in range(len(names))]
        if ranges is not None and (not ranges or behind >= ranges[-1][1]):
            return


def _parts(batch: Any, begin: int, ranges: Sequence[tuple[int, int]]) -> Iterator[Any]:
    """What of a batch, whose first row is ``begin``, lies in the ranges."""
    behind = begin + batch.num_rows
    for first, end in ranges[bisect_right(ranges, begin, key=itemgetter(1)) :]:
        if first >= behind:
            return
        start = max(first, begin)
        yield batch.slice(start - begin, min(end, behind) - start)


def open_parquet(path: Path) -> Any:
    """The file, opened so that it is read piece by piece. UnreadableInput for one that is out of all measure."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(
        path,
        buffer_size=1 << 16,
        pre_buffer=False,
        thrift_string_size_limit=_FOOTER_BYTES,
        thrift_container_size_limit=_FOOTER_PARTS,
    )
    metadata = file.metadata
    if metadata.num_columns > _MAX_COLUMNS:
        raise damaged(path.name, f"has more than {_MAX_COLUMNS} columns")
    for group in range(metadata.num_row_groups):
        if metadata.row_group(group).total_byte_size > MAX_GROUP_BYTES:
            raise damaged(path.name, f"has a row group of more than {MAX_GROUP_BYTES >> 30} GiB")
    return file


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Whatever pyarrow raises over a damaged file, as the file's fault."""
    try:
        yield
    except (StormctlError, MemoryError):
        raise
    except FileNotFoundError as error:
        raise unreadable(path, error) from error
    except ImportError as error:
        remedy = "Install pyarrow, or give the table as CSV."
        raise damaged(path.name, "is Parquet, for which pyarrow is needed", remedy=remedy) from error
    except Exception as error:
        if not _of_arrow(error):
            raise
        raise damaged(path.name, f"is no whole Parquet file: {_short(error)}") from None


def _of_arrow(error: Exception) -> bool:
    import pyarrow as pa

    return isinstance(error, (pa.lib.ArrowException, OSError, ValueError, OverflowError, TypeError, LookupError))


def _short(error: Exception) -> str:
    line = str(error).partition("\n")[0].lower()
    return ascii(line)[1:-1][:80] or type(error).__name__


def _values(column: Any) -> list[Any]:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_timestamp(column.type):
        return _times(column.cast(pa.timestamp("ms"), safe=False).cast(pa.int64()).to_pylist(), Ms)
    return list(column.to_pylist())


def _times(values: list[int | None], kind: Callable[[int], Any]) -> list[Any]:
    return [None if value is None else kind(value) for value in values]
