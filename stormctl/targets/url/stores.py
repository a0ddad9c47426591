"""Where the log of an app is read: opened and looked at before the first run, so that a wrong place is told at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from stormctl.errors import UsageError
from stormctl.readers.worldlocal import VERSION, store_at
from stormctl.storm.url_app import EVENTS, FOLDER, App
from stormctl.targets.outside import LocalStore, Outside, PostgresStore
from stormctl.targets.url.client import AppClient
from stormctl.targets.url.events import EventsStore
from stormctl.targets.url.filling import with_environment


def open_store(app: App, client: AppClient, environment: Mapping[str, str] | None = None) -> Outside:
    """The store of an app. Blocks. A StormctlError, one sentence with a remedy, when it can be none."""
    if app.log.kind == FOLDER:
        return LocalStore(_folder(app, Path(app.log.where)))
    if app.log.kind == EVENTS:
        assert app.log.route is not None
        return EventsStore(client, app.log.route, app.status)
    dsn = with_environment(app.log.where, f"the log of app {app.name}", environment)
    check_tables(dsn)
    return PostgresStore(dsn)


def check_tables(dsn: str) -> None:
    """Whether a database can be read and holds an event log; a StormctlError says what is wrong, without a password."""
    from stormctl.readers.workflow_pg import read_database

    for _ in read_database(dsn, []):
        pass


def _folder(app: App, folder: Path) -> Path:
    """The store at or just below a folder. One that is empty or not there yet may become one with the first run."""
    found = store_at(folder)
    if found is not None:
        return found
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"the log of app {app.name} is said to be in {folder}, which is a file", remedy=_FOLDER)
    if folder.is_dir() and not _is_young(folder):
        raise UsageError(
            f"the log of app {app.name} is said to be in {folder}, which is no store of a local world", remedy=_FOLDER
        )
    return folder


def _is_young(folder: Path) -> bool:
    """Whether a folder holds nothing but what a local world makes as it starts, before its first run."""
    return (folder / VERSION).is_file() or {entry.name for entry in folder.iterdir()} <= _MADE_FIRST


_MADE_FIRST = {VERSION, "runs", "events", "steps", "hooks", "waits", "streams", ".locks"}
_FOLDER = "Name the folder that WORKFLOW_LOCAL_DATA_DIR names there, or `.workflow-data` in the app's own folder."
