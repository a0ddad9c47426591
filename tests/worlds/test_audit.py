"""The audit stream, written and read."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from stormctl.errors import StoreFailure, UnreadableInput
from stormctl.history import AuditRecord
from stormctl.worlds import MAIN, SEQ_FINAL, read_audit
from stormctl.worlds.audit import AuditWriter
from tests.worlds.making import (
    RUN,
    STEP,
    STEP_2,
    FailingFiles,
    append_all,
    local,
    make_run,
    memory,
    want,
)

SCRIPT = [
    *make_run(),
    want("run_started"),
    want("step_started", STEP, name="a", payload=1, lazy=True, writer="A", count=2),
    want("step_created", STEP_2, name="b", payload=1, writer="B", count=2),
]


def check(records: list[AuditRecord]) -> None:
    assert [(record.type, record.position, record.admitted) for record in records] == [
        ("run_created", 1, True),
        ("run_started", 2, True),
        ("run_started", None, True),
        ("step_created", 3, True),
        ("step_started", 4, True),
        ("step_created", None, False),
    ]
    lazy, refused = records[3], records[5]
    assert (lazy.run_id, lazy.writer, lazy.correlation_id, lazy.snapshot) == (RUN, "A", STEP, 2)
    assert 0 < lazy.entered <= lazy.minted <= lazy.published <= lazy.returned
    assert refused.reason.startswith("precondition: ")
    assert (refused.published, refused.event_id) == (0, None)


class TestTheAudit:
    def test_of_a_folder_reads_back_as_it_was_written(self, tmp_path: Path) -> None:
        answers = append_all(local(tmp_path, SEQ_FINAL), SCRIPT)
        records = list(read_audit(tmp_path))
        check(records)
        landed = [event.event_id for answer in answers for event in getattr(answer, "events", ())]
        assert [record.event_id for record in records if record.event_id] == landed
        assert [path.name for path in (tmp_path / "audit").iterdir()] == [f"{os.getpid()}.ndjson"]

    def test_of_memory_is_the_same(self) -> None:
        world = memory(SEQ_FINAL)
        append_all(world, SCRIPT)
        check(world.audit)

    def test_of_a_store_that_kept_none_is_empty(self, tmp_path: Path) -> None:
        assert list(read_audit(tmp_path)) == []

    def test_names_a_failure(self, tmp_path: Path) -> None:
        async def go() -> None:
            files = FailingFiles()
            world = local(tmp_path, MAIN, files=files)
            files.fail_at = files.writes
            with pytest.raises(StoreFailure):
                await world.append(make_run()[0])
            await world.close()

        asyncio.run(go())
        (record,) = read_audit(tmp_path)
        assert record.reason.startswith("failed: ")
        assert not record.admitted


class TestTheWriter:
    RECORD = AuditRecord(RUN, "w", "noop", None, True, "", 1, "e", None, 1, 2, 3, 4)

    def writer(self, folder: Path, files: FailingFiles) -> AuditWriter:
        (folder / "audit").mkdir()
        return AuditWriter(folder, files)

    def test_keeps_what_a_full_disk_refused(self, tmp_path: Path) -> None:
        files = FailingFiles(lasting=True)
        writer = self.writer(tmp_path, files)
        files.fail_at = 0
        writer.write(self.RECORD)
        with pytest.raises(StoreFailure, match="No space"):
            writer.close()
        files.mend()
        writer.write(self.RECORD)
        writer.close()
        assert list(read_audit(tmp_path)) == [self.RECORD, self.RECORD]

    def test_leaves_a_line_that_a_kill_tore_unread(self, tmp_path: Path) -> None:
        writer = self.writer(tmp_path, FailingFiles())
        writer.write(self.RECORD)
        path = tmp_path / "audit" / f"{os.getpid()}.ndjson"
        path.write_bytes(path.read_bytes() + b'{"run_id": "wr')
        assert list(read_audit(tmp_path)) == [self.RECORD]

    def test_a_foreign_line_is_an_error_that_says_where(self, tmp_path: Path) -> None:
        (tmp_path / "audit").mkdir()
        (tmp_path / "audit" / "1.ndjson").write_text('{"hello": 1}\n')
        with pytest.raises(UnreadableInput, match=r"line 1 of 1\.ndjson"):
            list(read_audit(tmp_path))
