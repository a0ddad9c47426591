"""The injected delay between minting and publishing."""

from __future__ import annotations

import asyncio
import statistics

from stormctl.worlds import MAIN, SEQ_FINAL, Point
from stormctl.worlds.delay import PRODUCTION, PublishDelay
from tests.worlds.making import STEP, make_run, memory, want


class TestTheDelay:
    def test_has_the_shape_that_production_reported(self) -> None:
        delay = PublishDelay(seed=1)
        drawn = sorted(delay.draw(create=True) for _ in range(20_000))
        assert 29 < statistics.median(drawn) < 33
        assert 850 < drawn[int(len(drawn) * 0.99)] < 1150
        assert drawn[-1] == PRODUCTION.longest
        assert delay.draw(create=False) == 0.4

    def test_is_the_same_for_the_same_seed_and_differs_between_processes(self) -> None:
        one, same, other = (PublishDelay(seed=seed) for seed in ("7 w1", "7 w1", "7 w2"))
        first = [one.draw(create=True) for _ in range(5)]
        assert first == [same.draw(create=True) for _ in range(5)]
        assert first != [other.draw(create=True) for _ in range(5)]

    def test_is_scaled_and_switched_off_by_zero(self) -> None:
        full, tenth, off = (PublishDelay(seed=3, scale=scale) for scale in (1.0, 0.1, 0.0))
        assert abs(full.draw(create=True) - 10 * tenth.draw(create=True)) < 1e-9
        assert off.draw(create=True) == off.draw(create=False) == 0

    def test_lies_between_mint_and_publication_under_main_and_before_the_lock_under_seq_final(self) -> None:
        for condition, before in ((MAIN, Point.ALLOCATE), (SEQ_FINAL, Point.MINT_EARLY)):
            passed: list[str] = []

            async def at(point: Point, request: object, passed: list[str] = passed) -> None:
                passed.append(point)

            async def sleep(ms: float, passed: list[str] = passed) -> None:
                passed.append("delay" if ms > 0.4 else "receipt")

            async def go(condition=condition, at=at, sleep=sleep, passed=passed) -> None:  # type: ignore[no-untyped-def]
                world = memory(condition, on_point=at, sleep=sleep, delay=PublishDelay(seed=1))
                for request in make_run():
                    await world.append(request)
                passed.clear()
                await world.append(want("step_created", STEP, name="s", payload=1))

            asyncio.run(go())
            assert passed.index("delay") == passed.index(before) + 1
            assert [point for point in passed if point != "delay"] == list(Point)
