"""The engines themselves over logs that they wrote: what they said of a run then, they say again."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from stormctl.history import Capture, kinds
from stormctl.readers.payloads import Encoded
from stormctl.readers.sdk_json import READER
from stormctl.targets.sdk import projects
from stormctl.targets.sdk.replay import Answer, Bundle, Pool, bundle_of_version, find_bundle, record_of

pytestmark = [pytest.mark.sdk, pytest.mark.timeout(600)]

CORRUPTED = {
    "v489-tiny-hookStorm": "4.8.9",
    "v489-local3-stepStorm-00": "4.8.9",
    "v489-clean-hookStorm-03": "4.8.9",
    "v489pg_1p-stepStorm-03": "4.8.9",
    "v5b35-clean-stepStorm-05": "5.0.0-beta.35",
}
COMPLETED = {
    "v489-clean-stepStorm-03": "4.8.9",
    "v5b35-clean-stepStorm-00": "5.0.0-beta.35",
    "v5b55-clean-stepStorm-00": "5.0.0-beta.55",
}
Built = Callable[[str], Bundle]


@pytest.fixture(scope="session")
def built(real: Callable[..., object]) -> Built:
    """Our scenarios' bundle for a version, installed where it is not yet."""

    def get(version: str) -> Bundle:
        if projects.find(version) is None:
            real(version)
        return bundle_of_version(version)

    return get


def captured(shared_data: Path, name: str) -> Capture:
    (found,) = READER.read(shared_data / f"sdk/runs/{name}.json")
    return found


def verdict(bundle: Bundle, capture: Capture) -> Answer:
    """One pass over the whole log."""
    record = record_of(capture)
    with Pool(bundle) as pool:
        (answer,) = pool.passes(record, [record.length])
    assert answer.guard is None
    return answer


@pytest.mark.parametrize(("name", "version"), CORRUPTED.items())
def test_one_pass_over_a_corrupted_log_says_what_the_engine_said(
    built: Built, shared_data: Path, name: str, version: str
) -> None:
    capture = captured(shared_data, name)
    answer = verdict(built(version), capture)
    assert capture.run is not None
    assert answer.failure is not None
    assert answer.failure.message == capture.run.error_message
    assert answer.failure.code == "CORRUPTED_EVENT_LOG"
    assert answer.failure.divergent_event in {event.event_id for event in capture.log}
    assert answer.failure.divergence is not None
    assert answer.failure.divergence.startswith("Replay divergence: ")


@pytest.mark.parametrize(("name", "version"), COMPLETED.items())
def test_one_pass_over_a_completed_log_gives_the_bytes_that_it_returned(
    built: Built, shared_data: Path, name: str, version: str
) -> None:
    capture = captured(shared_data, name)
    answer = verdict(built(version), capture)
    (*_, end) = (event for event in capture.log if event.type == kinds.RUN_COMPLETED)
    assert isinstance(end.payload, Encoded)
    assert answer.output == end.payload.raw
    assert answer.failure is None


@pytest.mark.parametrize("version", ["5.0.0-beta.26", "5.0.0-beta.44", "4.6.1"])
def test_other_versions_replay_too(built: Built, shared_data: Path, version: str) -> None:
    """4.6.1 judges a log of 4.8.9 as that does; the others read one of their era."""
    if version == "4.6.1":
        capture = captured(shared_data, "v489-local3-stepStorm-00")
        answer = verdict(built(version), capture)
        assert capture.run is not None
        assert answer.failure is not None
        assert answer.failure.message == capture.run.error_message
    elif version == "5.0.0-beta.44":
        answer = verdict(built(version), captured(shared_data, "v5b55-clean-stepStorm-00"))
        assert answer.output is not None
    else:
        (capture,) = READER.read(shared_data / "sdk/local-5.0.0-beta.26-stepStorm-stuck-livelock.json")
        answer = verdict(built(version), capture)
        assert answer.ended in ("returned", "stopped")
        assert answer.calls["events.list"] == 1


@pytest.mark.parametrize("version", ["4.8.9", "5.0.0-beta.55"])
def test_the_bundle_alone_is_enough(built: Built, shared_data: Path, tmp_path: Path, version: str) -> None:
    """Nothing of the project lies beside it."""
    flow = built(version).flow
    for file in flow.parent.glob("*.*js"):
        shutil.copy(file, tmp_path)
    alone = find_bundle(tmp_path)
    assert (alone.version, alone.digest) == (version, built(version).digest)
    name = next(name for name, at in COMPLETED.items() if at == version)
    assert verdict(alone, captured(shared_data, name)).output is not None


@pytest.mark.parametrize(
    ("name", "version"),
    [("v489-local3-stepStorm-00", "4.8.9"), ("v5b55-clean-stepStorm-00", "5.0.0-beta.55")],
)
def test_the_same_prefix_gives_the_same_answer_in_every_process(
    built: Built, shared_data: Path, name: str, version: str
) -> None:
    record = record_of(captured(shared_data, name))
    wanted = [*range(2, 42), *range(41, 1, -1)]
    with Pool(built(version), jobs=2) as pool:
        answers = list(pool.passes(record, wanted))
    assert {answer.guard for answer in answers} == {None}
    there = answers[:40]
    for first, second in zip(there, reversed(answers[40:]), strict=True):
        assert (first.prefix, first.asked, first.queued) == (second.prefix, second.asked, second.queued)


def test_the_second_prefix_draws_the_ids_that_the_log_has(built: Built, shared_data: Path) -> None:
    for name, version in {**CORRUPTED, **COMPLETED}.items():
        capture = captured(shared_data, name)
        record = record_of(capture)
        with Pool(built(version)) as pool:
            (answer,) = pool.passes(record, [2])
        drawn = {asked.correlation_id for asked in answer.asked if asked.correlation_id}
        assert drawn
        assert drawn <= {event.correlation_id for event in capture.log}


def test_hiding_an_event_of_a_log_of_slots_leaves_a_log_that_is_read(built: Built, shared_data: Path) -> None:
    """Without the wait that it belongs to, its end cannot be placed; the ids in the text are the log's own."""
    capture = captured(shared_data, "v5b55-clean-stepStorm-00")
    record = record_of(capture)
    index = next(at for at, event in enumerate(capture.log) if event.type == kinds.WAIT_CREATED)
    wait = capture.log[index].correlation_id
    end = next(e for e in capture.log if e.type == kinds.WAIT_COMPLETED and e.correlation_id == wait)
    with Pool(built("5.0.0-beta.55")) as pool:
        (answer,) = pool.passes(record, [record.length], hidden=frozenset({index}))
    assert answer.failure is not None
    assert answer.failure.divergent_event == end.event_id


def test_how_long_it_takes(built: Built, shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The figures of a log of some 280 events: a bound that only a defect passes, for the machine may be busy."""
    for name, version in COMPLETED.items():
        capture = captured(shared_data, name)
        record = record_of(capture)
        facts = (kinds.STEP_COMPLETED, kinds.WAIT_COMPLETED, kinds.HOOK_RECEIVED)
        decisions = [at + 1 for at, event in enumerate(capture.log) if event.type in facts]
        began = time.monotonic()
        verdict(built(version), capture)
        alone = time.monotonic() - began
        with Pool(built(version), jobs=2) as pool:
            began = time.monotonic()
            assert len(list(pool.passes(record, decisions))) == len(decisions)
            some = time.monotonic() - began
        with capsys.disabled():
            print(f"\n{version}: {record.length} events, verdict {alone:.1f} s, {len(decisions)} prefixes {some:.1f} s")
        assert alone < 30
        assert some < 240
