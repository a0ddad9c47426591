"""The reader of a live database of the Workflow SDK's Postgres world, named by its DSN instead of a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stormctl.errors import UnreadableInput
from stormctl.history import Capture
from stormctl.readers.unreadable import Unreadable

SCHEMES = ("postgres://", "postgresql://")


@dataclass(frozen=True, slots=True)
class Database:
    """A database to read. Its DSN may hold a password; ``str`` of it does not."""

    dsn: str

    def __str__(self) -> str:
        from stormctl.worlds.postgres.dsn import redact

        return redact(self.dsn)

    def __repr__(self) -> str:
        return f"Database({self})"

    def read(self) -> Iterator[Capture | Unreadable]:
        """Its runs, the newest thousand."""
        from stormctl.readers.workflow_pg import read_database

        yield from read_database(self.dsn)


def is_dsn(text: str) -> bool:
    """Whether a text that stands where a path may stand is a DSN."""
    return text.startswith(SCHEMES)


class WorkflowDsnReader:
    """Stands for the database among the readers; no file is ever one."""

    name = "workflow-postgres"
    summary = "the live database of the Workflow SDK's Postgres world, by its DSN (postgres://...)"
    sign = "a DSN in place of a path; with --from also host=... dbname=..."

    def recognises(self, head: bytes, path: Path) -> bool:
        """Never: a file is no database."""
        return False

    def read(self, path: Path) -> Iterator[Capture | Unreadable]:
        """UnreadableInput: a file is no database."""
        raise UnreadableInput(f"{path.name} is a file, not a DSN", remedy="Give postgres://user@host/database.")


def database_of(text: str) -> Database:
    """The database that a person names; UsageError, which does not repeat it, when PostgreSQL cannot read it."""
    from stormctl.worlds.postgres.dsn import check_dsn

    check_dsn(text, "the path")
    return Database(text)


READER = WorkflowDsnReader()

__all__ = ["READER", "Database", "WorkflowDsnReader", "database_of", "is_dsn"]
