"""The readers by name: forced by --from, listed by help and docs, suggested when mistyped."""

from __future__ import annotations

from pathlib import Path

import pytest

from stormctl.cli.options import READER_NAMES
from stormctl.errors import UsageError
from stormctl.history import Capture
from stormctl.readers import READERS, Reader, Reading, Unreadable, open_captures, reader_for, reader_named
from tests.readers.samples import SAMPLES, store_files, write_files


def test_help_lists_the_readers_that_there_are() -> None:
    assert tuple(reader.name for reader in READERS) == READER_NAMES


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_the_docs_say_what_each_reads_and_what_it_knows_it_by(reader: Reader, root: Path) -> None:
    assert f"| `{reader.name}` | {reader.summary} | {reader.sign} |" in (root / "docs" / "readers.md").read_text()


@pytest.mark.parametrize("name", SAMPLES)
def test_each_recognises_what_it_is_for_under_any_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / "whatever"
    path.write_bytes(SAMPLES[name][1])
    assert reader_for(path).name == name


@pytest.mark.parametrize("name", SAMPLES)
def test_each_reads_what_it_is_for_when_it_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / SAMPLES[name][0]
    path.write_bytes(SAMPLES[name][1])
    by_content = [one.log for one in open_captures([path]) if isinstance(one, Capture)]
    named = [one.log for one in open_captures([path], Reading(name)) if isinstance(one, Capture)]
    assert named == by_content != []


def test_a_name_that_there_is_not_is_answered_with_the_likeliest() -> None:
    with pytest.raises(UsageError) as caught:
        reader_named("workflow-inspct")
    assert caught.value.remedy == "Did you mean 'workflow-inspect'?"


def test_a_file_that_is_something_else_than_it_was_named_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(SAMPLES["compact"][1])
    for name in SAMPLES:
        for one in open_captures([path], Reading(name)):
            assert isinstance(one, (Capture, Unreadable))


def test_a_folder_is_read_as_a_store_when_it_is_named_as_one(tmp_path: Path) -> None:
    files = {name: content for name, content in store_files().items() if name.startswith("events/")}
    write_files(tmp_path, files)  # neither runs/ nor version.txt: nothing says that this is a store
    (found,) = open_captures([tmp_path], Reading("world-local"))
    assert isinstance(found, Capture)
    assert len(found.log) == 6


def test_a_file_named_as_a_database_is_a_dsn_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a DSN"):
        list(open_captures([str(tmp_path / "a.json")], Reading("workflow-postgres")))
