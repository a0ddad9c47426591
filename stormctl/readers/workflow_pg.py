"""The live database of a Postgres world of the Workflow SDK: one capture per run, read and nothing else.

Everything is read in one read-only transaction that sees one moment, so that the runs agree with each other while
servers write on; rows come through a cursor of the server's, a batch of runs at a time. Which columns there are is
asked of the database, never told from a version. The order of a log is that of the ids byte by byte (before it the
``seq`` of a store that has one), and where the server keeps commit times, each event has the moment at which it became
readable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from stormctl.errors import StoreFailure, StormctlError, UnreadableInput
from stormctl.history import Capture, Event
from stormctl.readers.sdk_capture import Found, capture_of
from stormctl.readers.sdk_events import placed
from stormctl.readers.unreadable import Unreadable
from stormctl.readers.workflow_rows import ENTITY_FIELDS, entity_of_row, event_of_row, run_of_row

if TYPE_CHECKING:
    from psycopg import Connection

SCHEMA = "workflow"
#: Where the worlds of our own storms keep the same tables.
OWN_SCHEMA = "stormctl"
#: How many runs are read when none are named: the newest. A run's id begins with its time.
MAX_RUNS = 1_000
#: More events of one run than any engine replays; the rest is declared as not read.
MAX_EVENTS = 200_000
#: How many runs' rows are asked for at once, and how many rows come at a time.
BATCH, PAGE = 50, 2_000
#: How long the server may work on one statement, or wait for a lock.
STATEMENT_S = 150
_ENTITIES = {"workflow_steps": "step_id", "workflow_waits": "wait_id", "workflow_hooks": "hook_id"}
_RUN = (
    "id", "status", "name", "deployment_id", "error_code", "error", "input", "output", "spec_version",
    "execution_context", "created_at", "started_at",
)  # fmt: skip
_RUN_CBOR = ("input_cbor", "output_cbor", "error_cbor", "execution_context_cbor")
_EVENT = ("id", "type", "run_id", "correlation_id", "created_at", "payload", "payload_cbor", "spec_version", "seq")
_EVENT_MORE = ("resume_id",)
_XMIN, _CTID, _COMMITTED = "_xmin", "_ctid", "committed"
_NEEDED = {"id", "type", "run_id"}


def read_database(
    dsn: str, runs: Iterable[str] | None = None, *, schema: str = SCHEMA, most: int = MAX_RUNS
) -> Iterator[Capture | Unreadable]:
    """The runs of a database, or the given ones, in the order of their ids.

    Without ``runs`` the newest ``most`` are read, and that there were more is said at the end. A damaged row makes its
    run's log partial and is reported behind it. A StormctlError when the server cannot be reached, or holds no such
    schema.
    """
    with _connected(dsn) as (connection, shown):
        tables = _Tables(connection, schema, shown)
        wanted = list(dict.fromkeys(runs)) if runs is not None else tables.newest(most + 1)
        left_out = runs is None and len(wanted) > most
        wanted = sorted(wanted[:most] if left_out else wanted)
        for start in range(0, len(wanted), BATCH):
            yield from tables.read(wanted[start : start + BATCH])
        if left_out:
            yield Unreadable(
                shown, f"{shown} holds more than {most} runs; the older ones were not read", "Name the runs to read."
            )


def read_database_run(dsn: str, run_id: str, *, schema: str = SCHEMA) -> Capture:
    """One run of a database; a StormctlError when it is not there. Damaged rows become notes."""
    for one in read_database(dsn, [run_id], schema=schema):
        if isinstance(one, Capture):
            return one
        raise UnreadableInput(one.error, remedy=one.remedy)
    raise AssertionError("a run that is asked for is told of")


@dataclass(slots=True)
class _Run:
    """What was read of one run."""

    row: Mapping[str, Any] | None = None
    events: list[Event] = field(default_factory=list)
    committed: dict[str, int] = field(default_factory=dict)
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    broken: list[StormctlError] = field(default_factory=list)
    more: bool = False


class _Tables:
    """The tables of a Postgres world, by the columns that they really have."""

    def __init__(self, connection: Connection[Any], schema: str, shown: str) -> None:
        self._connection = connection
        self._schema = schema
        self._shown = shown
        self._columns: dict[str, set[str]] = defaultdict(set)
        found = connection.execute(
            "select table_name, column_name from information_schema.columns where table_schema = %s", [schema]
        )
        for table, column in found:
            self._columns[table].add(column)
        if not self._columns["workflow_events"] >= _NEEDED:
            raise UnreadableInput(
                f"{shown} holds no event log: there is no table {schema}.workflow_events",
                remedy="Give the database that the app's WORKFLOW_POSTGRES_URL names, and a user who may read it.",
            )
        stamped = connection.execute("select current_setting('track_commit_timestamp')::bool").fetchone()
        self._stamped = bool(stamped and stamped[0])

    def newest(self, most: int, since: int | None = None) -> list[str]:
        """The ids of the newest runs, of those that changed at or after a time in epoch milliseconds where one is
        given."""
        events, runs = self._name("workflow_events"), self._name("workflow_runs")
        moment = None if since is None else datetime.fromtimestamp(since / 1000, UTC).replace(tzinfo=None)
        known = [f"select run_id as id from {events}{self._after(moment, 'workflow_events')} group by run_id"]
        if "id" in self._columns["workflow_runs"]:
            known.append(f"select id from {runs}{self._after(moment, 'workflow_runs')}")
        statement = f'select id from ({" union ".join(known)}) as known order by id collate "C" desc limit {int(most)}'
        found = self._connection.execute(statement, {"since": moment})
        return [row[0] for row in found]

    def _after(self, moment: datetime | None, table: str) -> str:
        """The condition that a row is of the time or later; one without any time counts as such."""
        times = self._there(table, ("created_at", "updated_at", "started_at", "completed_at"))
        return f" where {' or '.join(f'{name} >= %(since)s' for name in times)}" if moment is not None and times else ""

    def read(self, runs: Sequence[str]) -> Iterator[Capture | Unreadable]:
        """The captures of a batch of runs, each followed by what is broken in it."""
        found: dict[str, _Run] = {run_id: _Run() for run_id in runs}
        self._read_runs(runs, found)
        self._read_events(runs, found)
        self._read_entities(runs, found)
        for run_id, run in found.items():
            source = f"{self._shown} {run_id}"
            if run.row is None and not run.events and not run.broken:
                yield Unreadable(source, f"{self._shown} holds no run {run_id}", "Check the run's id.")
                continue
            notes = [str(problem) for problem in run.broken[:5]]
            if run.more:
                notes.append(f"more than {MAX_EVENTS} events; the rest was not read")
            about = {"rows": run.rows} if run.rows else {}
            try:
                yield capture_of(
                    Found(
                        source=source,
                        run_id=run_id,
                        events=placed(run.events),
                        origin="Postgres world",
                        row=run.row,
                        committed=run.committed,
                        about=about,
                        notes=notes,
                        partial=run.more or bool(run.broken),
                    )
                )
            except StormctlError as error:
                yield Unreadable.of(source, error)
            for problem in run.broken:
                yield Unreadable.of(source, problem)

    # -- the tables ---------------------------------------------------------------------------------------------------

    def _read_runs(self, runs: Sequence[str], found: dict[str, _Run]) -> None:
        columns = self._there("workflow_runs", (*_RUN, *_RUN_CBOR))
        if "id" not in columns:
            return
        casts = {"status": "status::text", "error": "error::text"}
        for row in self._rows("workflow_runs", [casts.get(name, name) for name in columns], columns, "id", runs):
            run = found[row["id"]]
            try:
                run.row = run_of_row(row)
            except StormctlError as error:
                run.broken.append(error)

    def _read_events(self, runs: Sequence[str], found: dict[str, _Run]) -> None:
        columns = self._there("workflow_events", (*_EVENT, *_EVENT_MORE))
        names = [*columns, _XMIN, _CTID]
        wanted = [*columns, "xmin::text", "ctid::text"]
        if self._stamped:
            names.append(_COMMITTED)
            wanted.append("pg_xact_commit_timestamp(xmin)")
        order = 'run_id collate "C", ' + ("seq nulls first, " if "seq" in columns else "") + 'id collate "C"'
        for row in self._rows("workflow_events", wanted, names, "run_id", runs, order):
            run = found[row["run_id"]]
            if len(run.events) >= MAX_EVENTS:
                run.more = True
                continue
            committed = row.pop(_COMMITTED, None)
            try:
                event = event_of_row(row)
            except StormctlError as error:
                run.broken.append(error)
                continue
            run.events.append(event)
            if isinstance(committed, datetime) and event.event_id is not None:
                run.committed[event.event_id] = round(committed.timestamp() * 1_000_000)

    def _read_entities(self, runs: Sequence[str], found: dict[str, _Run]) -> None:
        for table, key in _ENTITIES.items():
            columns = self._there(table, (key, "run_id", *ENTITY_FIELDS))
            if not {key, "run_id"} <= set(columns):
                continue
            wanted = ["status::text" if name == "status" else name for name in columns]
            for row in self._rows(table, wanted, columns, "run_id", runs):
                run_id = row["run_id"]
                found[run_id].rows[str(row[key]).removeprefix(f"{run_id}-")] = entity_of_row(row)

    def _rows(
        self, table: str, wanted: Sequence[str], names: Sequence[str], key: str, runs: Sequence[str], order: str = ""
    ) -> Iterator[dict[str, Any]]:
        statement = f"select {', '.join(wanted)} from {self._name(table)} where {key} = any(%s)" + (
            f" order by {order}" if order else ""
        )
        with self._connection.cursor(name=f"stormctl_{table}") as cursor:
            cursor.itersize = PAGE
            cursor.execute(statement, [list(runs)])
            for row in cursor:
                yield dict(zip(names, row, strict=True))

    def _there(self, table: str, columns: Sequence[str]) -> list[str]:
        return [column for column in columns if column in self._columns[table]]

    def _name(self, table: str) -> str:
        return f'"{self._schema.replace(chr(34), chr(34) * 2)}".{table}'


@contextmanager
def _connected(dsn: str) -> Iterator[tuple[Connection[Any], str]]:
    """A connection inside a read-only transaction, and how its DSN is shown. The server's errors become ours."""
    import psycopg

    from stormctl.worlds.postgres.dsn import check_dsn, redact
    from stormctl.worlds.postgres.failures import explain_failure
    from stormctl.worlds.postgres.inspect import connect

    check_dsn(dsn, "the DSN")
    shown = redact(dsn)
    connection = connect(dsn)
    try:
        _read_only(connection)
        _limit(connection)
        yield connection, shown
    except psycopg.Error as error:
        raise explain_failure(error, shown) from None
    finally:
        connection.close()


def _read_only(connection: Connection[Any]) -> None:
    """From now on its transactions write nothing, and each sees one moment."""
    import psycopg

    connection.autocommit = False
    connection.read_only = True
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ


def _limit(connection: Connection[Any]) -> None:
    """Begin a transaction whose statements do not run, or wait for a lock, for ever."""
    limit = str(STATEMENT_S * 1000)
    connection.execute(
        "select set_config('TimeZone', 'UTC', true), set_config('statement_timeout', %s, true),"
        " set_config('lock_timeout', %s, true)",
        [limit, limit],
    )


class LiveRuns:
    """The runs of a database, each read in a read-only transaction of its own.

    The schema is the SDK's; where it has no event log, that of our own worlds. UsageError for a DSN that PostgreSQL
    cannot read. Nothing is connected before :meth:`connect`.
    """

    def __init__(self, dsn: str, schemas: Sequence[str] = (SCHEMA, OWN_SCHEMA)) -> None:
        from stormctl.worlds.postgres.dsn import check_dsn, redact

        check_dsn(dsn, "the DSN")
        self.shown = redact(dsn)
        self._dsn = dsn
        self._schemas = tuple(schemas)
        self._connection: Connection[Any] | None = None
        self._tables: _Tables | None = None

    @property
    def lost(self) -> bool:
        """Whether there is no connection, or no longer one."""
        return self._connection is None or self._connection.closed or self._connection.broken

    def connect(self) -> None:
        """Connect, again where a connection was lost. A StormctlError when that fails, or there is no event log."""
        from stormctl.worlds.postgres.inspect import connect

        self.close()
        self._connection = connect(self._dsn)
        try:
            _read_only(self._connection)
            self._find_tables()
        except BaseException:
            self.close()
            raise

    def _find_tables(self) -> None:
        with self._moment() as connection:
            for schema in self._schemas:
                try:
                    self._tables = _Tables(connection, schema, self.shown)
                    return
                except UnreadableInput:
                    if schema == self._schemas[-1]:
                        raise UnreadableInput(
                            f"{self.shown} holds no event log: there is no table {self._schemas[0]}.workflow_events",
                            remedy="Give the database that the app's WORKFLOW_POSTGRES_URL names, and a user who may "
                            "read it.",
                        ) from None

    def close(self) -> None:
        """End the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def changed(self, since: int | None, most: int) -> list[str]:
        """The ids of the runs that changed at or after a time in epoch milliseconds, or of all: the newest ``most``, in
        their order."""
        with self._moment():
            assert self._tables is not None
            return sorted(self._tables.newest(most, since))

    def read(self, run_id: str) -> list[Capture | Unreadable]:
        """The capture of a run, and what of it is broken; a StormctlError when the server does not answer."""
        with self._moment():
            assert self._tables is not None
            return list(self._tables.read([run_id]))

    @contextmanager
    def _moment(self) -> Iterator[Connection[Any]]:
        """A transaction that sees one moment. The server's errors become ours."""
        import psycopg

        from stormctl.worlds.postgres.failures import explain_failure

        if self._connection is None:
            raise StoreFailure(f"{self.shown} is not connected", remedy="Check that the server runs.")
        try:
            _limit(self._connection)
            yield self._connection
        except psycopg.Error as error:
            raise explain_failure(error, self.shown) from None
        finally:
            with suppress(psycopg.Error):
                self._connection.rollback()
