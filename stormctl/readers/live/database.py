"""Runs out of a database while its servers write: each in a read-only transaction of its own, which sees one moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType

from stormctl.errors import StormctlError
from stormctl.readers.live.source import MAX_RUNS, SourceLost, Taken, taken
from stormctl.readers.unreadable import Unreadable
from stormctl.readers.workflow_pg import LiveRuns


class DatabaseSource:
    """A database of the Workflow SDK's Postgres world, or of ours; a context manager.

    UsageError for a DSN that PostgreSQL cannot read; a StormctlError when the server cannot be reached, or has no event
    log.
    """

    def __init__(self, dsn: str) -> None:
        self._runs = LiveRuns(dsn)

    def __enter__(self) -> DatabaseSource:
        self._runs.connect()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._runs.close()

    @property
    def shown(self) -> str:
        """The DSN without its password."""
        return self._runs.shown

    def runs(self, since: int | None = None) -> list[str]:
        """See :class:`stormctl.readers.live.source.Source`. A run has changed when it has an event, or its row an
        update, of that time."""
        return self._runs.changed(since, MAX_RUNS)

    def read(self, runs: Sequence[str]) -> Iterator[Taken]:
        """See :class:`stormctl.readers.live.source.Source`. A connection that is lost is made again once for a run."""
        for run_id in runs:
            try:
                yield taken(run_id, self._runs.read(run_id))
            except StormctlError as error:
                if not self._runs.lost:
                    yield Taken(run_id, None, (Unreadable.of(f"{self.shown} {run_id}", error),))
                    continue
                try:
                    self._runs.connect()
                    yield taken(run_id, self._runs.read(run_id))
                except StormctlError as gone:
                    raise SourceLost(str(gone), remedy=gone.remedy) from None
            except Exception as error:  # in one run of many, it must not hide the others
                yield Taken(run_id, None, (Unreadable.unforeseen(f"{self.shown} {run_id}", error),))
