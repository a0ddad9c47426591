"""Our own logs as columns, for the checks that can be made over a whole column at once.

A run becomes columns only where every row of it is just what stormctl writes. Whatever else a row holds, odd or broken,
is for the reader of rows, which says what it means or what is wrong with it. So nothing is accepted here that the other
would refuse, and a log that is not understood costs one look.
"""

from stormctl.readers.columns.block import CODES, NEVER, OTHER, TYPES, Block, Lives, Run
from stormctl.readers.columns.ndjson_columns import NdjsonRuns
from stormctl.readers.columns.parquet_columns import NotColumns, parquet_blocks

__all__ = ["CODES", "NEVER", "OTHER", "TYPES", "Block", "Lives", "NdjsonRuns", "NotColumns", "Run", "parquet_blocks"]
