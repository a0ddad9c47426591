"""The storms of a database, and the work journal."""

from __future__ import annotations

import os

import pytest

from stormctl.worlds import process
from stormctl.worlds.postgres.storms import StormTable
from tests.worlds.postgres.making import new_space, query, run

pytestmark = pytest.mark.storm


def test_a_storm_is_found_while_it_runs(dsn: str) -> None:
    async def main() -> None:
        first, second = new_space(), new_space()
        table = StormTable(dsn)
        try:
            await table.register_storm(first, "quick", "name: quick\n")
            await table.register_storm(second, "later", "name: later\n")
            mine = [one for one in await table.running_storms() if one.id in (first, second)]
            assert [one.id for one in mine] == [first, second]
            assert (mine[0].name, mine[0].plan, mine[0].pid) == ("quick", "name: quick\n", os.getpid())
            assert mine[0].host == process.host()
            assert await table.beat(first)
            found = await table.storm(first)
            assert found is not None
            assert found.heartbeat_at >= mine[0].heartbeat_at
            await table.end_storm(first)
            await table.end_storm(first)
            assert not await table.beat(first)
            assert [one.id for one in await table.running_storms() if one.id in (first, second)] == [second]
            ended = await table.storm(first)
            assert ended is not None
            assert not ended.running
            query(dsn, "update stormctl.storms set heartbeat_at = now() - interval '61 s' where id = %s", second)
            assert second not in [one.id for one in await table.running_storms()]
            assert await table.storm("none") is None
        finally:
            await table.close()

    run(main())


def test_work_is_kept_by_run_in_the_order_of_writing(dsn: str) -> None:
    async def main() -> None:
        storm = new_space()
        table, other = StormTable(dsn), StormTable(dsn)
        try:
            await table.register_storm(storm, "quick", "")
            rows = [{"run": "r1", "ending": "suspended", "passes": 1}, {"run": "r2", "ending": "ended", "passes": 2}]
            await table.journal(storm, rows)
            await other.journal(storm, [{"run": "r1", "ending": "ended", "passes": 3}])
            await table.journal(storm, [])
            assert await other.work_of(storm, "r1") == [rows[0], {"run": "r1", "ending": "ended", "passes": 3}]
            assert len(await table.work_of(storm)) == 3
            assert await table.work_of(storm, "r9") == []
        finally:
            await other.close()
            await table.close()

    run(main())
