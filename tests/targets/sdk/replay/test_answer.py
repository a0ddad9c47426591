"""What is read out of a worker's line, and out of the message of a run that failed."""

from __future__ import annotations

import base64
import gzip

import pytest

from stormctl.errors import StoreFailure
from stormctl.targets.sdk.replay.answer import Asked, answer_of, divergence_in, failure_of

TEXT = (
    "Workflow replay diverged 4 times after 3 recovery replays; latest divergent event was evnt_X. Last divergence:"
    ' Replay divergence: step event step_created for step_Y belongs to "a", but the current step consumer is "b"'
)
LAST = TEXT.partition("Last divergence: ")[2]


@pytest.mark.parametrize(
    "links",
    [
        "",
        "\n\nLearn more: https://useworkflow.dev/err/replay-divergence",
        "\n\N{BOX DRAWINGS LIGHT ARC UP AND RIGHT} docs: https://workflow-sdk.dev/err/replay-divergence",
    ],
    ids=["alone", "4.x", "5.x"],
)
def test_a_divergence_is_read_out_of_its_message(links: str) -> None:
    assert divergence_in(TEXT + links) == ("evnt_X", LAST)


def test_the_latest_of_several_divergent_events_is_taken() -> None:
    """5.x names them all when they were not the same."""
    several = TEXT.replace("evnt_X.", "evnt_X; divergent event ids: evnt_W, evnt_X.")
    assert divergence_in(several) == ("evnt_X", LAST)


def test_another_failure_has_no_divergence() -> None:
    assert divergence_in("out of luck") == (None, None)


@pytest.mark.parametrize(
    "asked",
    [
        Asked("run_failed", data={"errorCode": "C", "error": {"message": TEXT, "stack": "at"}}),
        Asked("run_failed", data={"error": {"message": TEXT, "code": "C"}}),
        Asked("run_failed", data={"errorCode": "C", "error": TEXT}),
        Asked("run_failed", payload=b'devl[["Error",1],{"message":2},"' + TEXT.replace('"', '\\"').encode() + b'"]',
              data={"errorCode": "C"}),
        Asked("run_failed", payload=b"gzip" + gzip.compress(b'devl["' + TEXT.replace('"', '\\"').encode() + b'"]'),
              data={"errorCode": "C"}),
    ],
    ids=["4.x", "4.x with the code inside", "a text", "5.x", "5.x compressed"],
)  # fmt: skip
def test_a_failure_is_read_in_every_form(asked: Asked) -> None:
    failure = failure_of(asked)
    assert (failure.code, failure.message) == ("C", TEXT)
    assert (failure.divergent_event, failure.divergence) == ("evnt_X", LAST)


def test_bytes_that_cannot_be_read_do_not_hide_the_failure() -> None:
    assert "payload" in failure_of(Asked("run_failed", payload=b"gzipno")).message


LINE = {
    "asked": [{"type": "run_completed", "payload": base64.b64encode(b"devl[1]").decode()}],
    "queued": [],
    "ended": "returned",
    "error": None,
    "guard": None,
    "calls": {},
    "ms": 1,
    "said": [],
}


def test_the_output_is_that_of_the_end() -> None:
    answer = answer_of(LINE, 3, frozenset({1}))
    assert (answer.output, answer.failure, answer.prefix, answer.hidden) == (b"devl[1]", None, 3, frozenset({1}))


@pytest.mark.parametrize("key", sorted(LINE))
def test_a_line_that_is_no_answer_is_a_fault(key: str) -> None:
    with pytest.raises(StoreFailure, match="cannot be read"):
        answer_of({name: value for name, value in LINE.items() if name != key}, 3, frozenset())
