"""What the SDK prints of a log that it gave up, and which of our generations says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from stormctl.engine.door import Divergence
from stormctl.engine.generations import GENERATIONS
from stormctl.history import Capture
from stormctl.readers import open_captures
from stormctl.targets.sdk.generations import generation_of
from stormctl.targets.sdk.printed import EngineFor, Printed, core_version, judged, predictions, printed, same

HEAD = "Workflow replay diverged 4 times after 3 recovery replays; latest divergent event was evnt_7. Last divergence: "
NAME = (
    'Replay divergence: step event step_created for step_X belongs to "step//./workflows/storms//recover", but the '
    'current step consumer is "step//./workflows/storms//release"\n\nLearn more: https://useworkflow.dev/err/x'
)
RESUME = (
    'Replay divergence: wait_completed event for wait_X has resumeAt "1970-01-01T00:00:01.611Z", but the current wait '
    'consumer expects "1970-01-01T00:00:01.612Z"'
)


def divergence(**changes: object) -> Divergence:
    given = {
        "reason": "name",
        "index": 6,
        "position": None,
        "event_id": "evnt_7",
        "event_type": "step_created",
        "rank": 3,
        "expected": "step:recover",
        "actual": "step:release",
        "text": "",
    }
    return Divergence(**{**given, **changes})  # type: ignore[arg-type]


class TestReading:
    def test_a_step_of_another_name(self) -> None:
        found = printed(HEAD + NAME)
        assert found == Printed(
            "evnt_7", "name", "step//./workflows/storms//recover", "step//./workflows/storms//release"
        )

    def test_a_wait_that_ends_at_another_time(self) -> None:
        assert printed(HEAD + RESUME) == Printed("evnt_7", "resume-at", "1611", "1612")

    def test_an_event_that_nobody_consumed(self) -> None:
        assert printed(HEAD + "Replay divergence: could not consume event evnt_7") == Printed("evnt_7", "unconsumed")

    @pytest.mark.parametrize("text", [None, "", "the user's code threw", HEAD + "something new"])
    def test_anything_else_is_none(self, text: str | None) -> None:
        assert printed(text) is None


class TestSame:
    def test_needs_the_event_what_stands_there_and_what_came_instead(self) -> None:
        wanted = printed(HEAD + NAME)
        assert wanted is not None
        assert same(divergence(), wanted)
        assert not same(divergence(event_id="evnt_8"), wanted)
        assert not same(divergence(expected="step:finalize"), wanted)
        assert not same(divergence(actual="step:finalize"), wanted)
        assert not same(None, wanted)

    def test_of_waits_their_times(self) -> None:
        wanted = printed(HEAD + RESUME)
        assert wanted is not None
        assert same(divergence(expected="wait until 1611", actual="wait until 1612"), wanted)
        assert not same(divergence(expected="wait until 1611", actual="wait until 1613"), wanted)

    def test_of_an_unconsumed_event_the_kind_of_fault(self) -> None:
        assert same(divergence(reason="unconsumed"), Printed("evnt_7", "unconsumed"))
        assert not same(divergence(), Printed("evnt_7", "unconsumed"))


@pytest.mark.parametrize(
    ("version", "generation"),
    [
        ("4.6.1", "opposite"),
        ("4.8.9", "opposite"),
        ("5.0.0-beta.26", "opposite"),
        ("5.0.0-beta.36", "opposite"),
        ("5.0.0-beta.37", "transitive"),
        ("5.0.0-beta.44", "turnstile"),
        ("5.0.0-beta.46", "turnstile"),
        ("5.0.0-beta.47", "rearm"),
        ("5.0.0", "rearm"),
    ],
)
def test_a_version_has_the_generation_that_it_was_published_with(version: str, generation: str) -> None:
    assert generation_of(version) == generation
    assert generation in GENERATIONS


def test_without_the_draws_in_log_order_a_late_version_is_an_earlier_generation() -> None:
    assert generation_of("5.0.0-beta.55", {"WORKFLOW_LOG_ORDER_DRAWS": "0"}) == "dispenser"
    assert generation_of("5.0.0-beta.55", {"WORKFLOW_LOG_ORDER_DRAWS": "1"}) == "rearm"
    assert generation_of("4.8.9", {"WORKFLOW_LOG_ORDER_DRAWS": "0"}) == "opposite"


class TestTheCapturedRuns:
    """The measurement that the table of generations rests on."""

    def captures(self, shared_data: Path) -> list[Capture]:
        paths = sorted((shared_data / "sdk").glob("*.json")) + sorted((shared_data / "sdk" / "runs").glob("*.json"))
        return [one for one in open_captures(paths) if isinstance(one, Capture)]

    def test_the_generation_of_its_version_predicts_what_the_sdk_printed_of_every_corrupted_run(
        self, shared_data: Path
    ) -> None:
        engines = [(name, EngineFor(name)) for name in GENERATIONS]
        found = list(predictions(self.captures(shared_data), engines))
        assert len(found) == 10
        for one in found:
            assert one.version is not None
            assert generation_of(one.version) in one.by, one
        # and not because any generation would do: those with steps in the log's order miss most of the names
        missed = [one for one in found if "rearm" not in one.by]
        assert len(missed) >= 6

    def test_it_replays_every_completed_run_to_its_end(self, shared_data: Path) -> None:
        ended = 0
        for capture in self.captures(shared_data):
            if capture.run is None or capture.run.status != "completed":
                continue
            version = core_version(capture.log)
            assert version is not None
            log = judged(capture.log)
            (one,) = EngineFor(generation_of(version))(capture).passes(log, [len(log)])
            assert one.outcome == "completed", (capture.source, one.divergence)
            ended += 1
        assert ended >= 6
