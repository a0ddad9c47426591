"""Mutated logs in number: of a dense log no mutation that loses, doubles or exchanges events is clean, in any file that
holds one; and whatever is done to the bytes of a file, every reader and sweep ends soon, with a report or one sentence.

``STORMCTL_MUTATED`` says how many of each; 10,000 take some minutes.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import tarfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from stormctl.history import Capture, Event, EventLog, ids, kinds
from stormctl.readers import Reading, Unreadable, open_file, reader_for, write_capture
from stormctl.readers.parquet import write_parquet
from stormctl.sweeps import PROFILES, LogReport, SweepPlan, Verdict, sweep_log, sweep_paths
from stormctl.testing import run_serially
from stormctl.workloads.registry import WORKLOADS
from tests.readers.looked import SECONDS, look
from tests.readers.samples import SAMPLES
from tests.readers.test_mutated import ALL, mutations
from tests.readers.test_tables_mutated import FORMS

COUNT = int(os.environ.get("STORMCTL_MUTATED", "300"))
pytestmark = pytest.mark.timeout(120 + COUNT // 5)
#: A wait on the clock this long is a hang, whatever else the machine does meanwhile.
HANG_S = 60.0
FAST = ("dense", "id-order", "lifecycle")
ENDS = kinds.STEP_TERMINAL | {kinds.WAIT_COMPLETED, kinds.HOOK_DISPOSED}


@cache
def sound(name: str, slots: bool, width: int) -> Capture:
    """A whole run whose store numbers its events, with ULIDs or slots as event ids."""
    workload = WORKLOADS[name]
    rounds = {"rounds": 1} if name == "hook-storm" else {"rounds": 2}
    built = run_serially(workload, workload.input_type(token="t", width=width, **rounds))
    if slots:
        built.events = [replace(one, event_id=ids.slot_id(place)) for place, one in enumerate(built.events, 1)]
    return built.capture()


# -- what is done to a log -------------------------------------------------------------------------------------------


def removed(events: list[Event], draw: random.Random) -> list[Event]:
    """Without one that is not the last."""
    at = draw.randrange(len(events) - 1)
    return events[:at] + events[at + 1 :]


def cut(events: list[Event], _: random.Random) -> list[Event]:
    """Without the last, which the count beside the log and the run's status tell of."""
    return events[:-1]


def doubled(events: list[Event], draw: random.Random) -> list[Event]:
    """One of them twice, as it is or created a moment later."""
    at = draw.randrange(len(events))
    again = replace(events[at], created_at=(events[at].created_at or 0) + draw.randrange(2))
    where = draw.randrange(at, len(events)) + 1
    return [*events[:where], again, *events[where:]]


def exchanged(events: list[Event], draw: random.Random) -> list[Event]:
    """A create and the end of what it made in each other's place, the position and the slot staying where they are."""
    made = {event.correlation_id: at for at, event in enumerate(events) if event.type in kinds.CREATES}
    pairs = [(made[one.correlation_id], at) for at, one in enumerate(events) if one.type in ENDS]
    first, second = draw.choice([*pairs, (0, len(events) - 1)])
    found = list(events)
    found[first], found[second] = _put(events[second], events[first]), _put(events[first], events[second])
    return found


def _put(one: Event, there: Event) -> Event:
    slot = {"event_id": there.event_id} if ids.slot_of(there.event_id or "") is not None else {}
    return replace(one, position=there.position, **slot)


MUTATIONS: dict[str, Callable[[list[Event], random.Random], list[Event]]] = {
    one.__name__: one for one in (removed, cut, doubled, exchanged)
}

# -- the files that hold a dense log ---------------------------------------------------------------------------------


def as_lines(capture: Capture, folder: Path) -> Path:
    return write_capture(capture, folder)


def as_parquet(capture: Capture, folder: Path) -> Path:
    write_parquet([capture], folder / "log.parquet")
    return folder / "log.parquet"


def as_archive(capture: Capture, folder: Path) -> Path:
    log = write_capture(capture, folder / "in")
    with tarfile.open(folder / "logs.tgz", "w:gz", compresslevel=1) as archive:
        archive.add(log.parents[1], arcname="storm")
    return folder / "logs.tgz"


def as_events_of_the_sdk(capture: Capture, folder: Path) -> Path:
    """The JSON that the SDK lists, packed; its slots are its positions, and nothing beside it tells of a tail."""
    rows = []
    for event in capture.log:
        row = {"eventId": event.event_id, "eventType": event.type, "runId": event.run_id, "specVersion": 7}
        given = {"stepName": event.name, "token": event.token}
        data = {key: value for key, value in given.items() if value is not None}
        if event.resume_at is not None:
            data["resumeAt"] = event.resume_at
        more = {"correlationId": event.correlation_id, "createdAt": event.created_at, "eventData": data or None}
        rows.append({**row, **{key: value for key, value in more.items() if value is not None}})
    path = folder / "events.json.gz"
    path.write_bytes(gzip.compress(json.dumps(rows).encode(), 1))
    return path


WRITTEN: dict[str, Callable[[Capture, Path], Path]] = {
    "lines": as_lines, "parquet": as_parquet, "archive": as_archive, "sdk": as_events_of_the_sdk,
}  # fmt: skip


def reports_of(path: Path, plan: SweepPlan) -> list[LogReport | Unreadable]:
    began, clock = time.process_time(), time.monotonic()
    found = list(sweep_paths([path], plan))
    assert time.process_time() - began < SECONDS
    assert time.monotonic() - clock < HANG_S
    return found


def clean(path: Path, plan: SweepPlan) -> bool:
    """Whether everything in a file is clean; a report in which a check has failed is none."""
    found = reports_of(path, plan)
    assert found
    for one in found:
        assert isinstance(one, LogReport), one
        assert not [text for result in one.sweeps for text in result.missing if "itself failed" in str(text)]
    return all(isinstance(one, LogReport) and one.verdict is Verdict.CLEAN for one in found)


def test_the_sound_logs_are_clean_in_every_file_that_can_say_so(tmp_path: Path) -> None:
    for number, form in enumerate(("lines", "parquet", "archive")):
        for name in ("step-storm", "hook-storm"):
            path = WRITTEN[form](sound(name, True, 2), _folder(tmp_path, f"{number}-{name}"))
            assert clean(path, SweepPlan(profile="workflow@5"))
            assert clean(path, SweepPlan(profile="workflow@5", only=FAST))
    # what the SDK lists names no workload, so the checks of scenarios have no answer; the others have one
    path = WRITTEN["sdk"](sound("step-storm", True, 2), _folder(tmp_path, "sdk"))
    assert clean(path, SweepPlan(profile="workflow@5", only=FAST))


def test_no_mutated_dense_log_is_clean(tmp_path: Path) -> None:
    draw = random.Random("dense")
    tried: Counter[str] = Counter()
    for number in range(COUNT):
        form = draw.choice(sorted(WRITTEN))
        how = draw.choice(sorted(MUTATIONS))
        if form == "sdk" and how == "cut":
            how = "removed"  # no count lies beside it
        capture = sound(
            draw.choice(["step-storm", "hook-storm"]), form == "sdk" or draw.random() < 0.5, draw.randrange(1, 4)
        )
        events = MUTATIONS[how](list(capture.log), draw)
        changed = replace(capture, log=EventLog(events, capture.log.run_id))
        folder = _folder(tmp_path, str(number % 50))
        path = WRITTEN[form](changed, folder)
        profile = draw.choice([*sorted(PROFILES), "auto"])
        for plan in (SweepPlan(profile=profile), SweepPlan(profile=profile, only=FAST)):
            assert not clean(path, plan), (form, how, profile, plan.only, number)
        tried[f"{form} {how}"] += 1
    assert len(tried) == len(WRITTEN) * len(MUTATIONS) - 1


def _folder(tmp_path: Path, name: str) -> Path:
    """An empty folder; the files of an earlier log in it are removed."""
    import shutil

    shutil.rmtree(tmp_path / name, ignore_errors=True)
    (tmp_path / name).mkdir()
    return tmp_path / name


# -- bytes -----------------------------------------------------------------------------------------------------------


def test_whatever_is_done_to_bytes_every_reader_and_sweep_ends(tmp_path: Path) -> None:
    draw = random.Random("bytes")
    forms = [(name, content, None) for name, content in ALL.values()] + list(FORMS.values())
    done = 0
    while done < COUNT:
        name, content, reader = draw.choice(forms)
        named = draw.choice([reader, reader, draw.choice(sorted(SAMPLES))])
        path = tmp_path / name
        for changed in mutations(content, draw):
            path.write_bytes(changed)
            clock = time.monotonic()
            look(path, Reading(named))
            assert time.monotonic() - clock < HANG_S
            done += 1


def parquet_bytes(folder: Path) -> list[bytes]:
    """Three runs as we write them, and the same without compression, where one bit changes one value."""
    import pyarrow.parquet as pq

    names = ("step-storm", "hook-storm", "step-storm")
    captures = [replace(sound(name, False, 2), source=f"{number}") for number, name in enumerate(names)]
    captures = [
        replace(
            one,
            log=EventLog([replace(event, run_id=f"wrun_{number:026d}") for event in one.log], f"wrun_{number:026d}"),
        )
        for number, one in enumerate(captures)
    ]
    write_parquet(captures, folder / "a.parquet")
    table = pq.read_table(folder / "a.parquet")
    pq.write_table(table, folder / "b.parquet", compression="none", use_dictionary=False, write_statistics=False)
    return [(folder / name).read_bytes() for name in ("a.parquet", "b.parquet")]


def test_changed_bytes_of_parquet_are_told_by_columns_as_by_rows(tmp_path: Path) -> None:
    contents = parquet_bytes(tmp_path)
    path = tmp_path / "changed.parquet"
    plan = SweepPlan(profile="auto", only=FAST)
    draw = random.Random("parquet")
    done = readable = 0
    while done < COUNT:
        for changed in mutations(draw.choice(contents), draw):
            path.write_bytes(changed)
            found = reports_of(path, plan)
            assert found == [
                item if isinstance(item, Unreadable) else sweep_log(item, plan) for item in open_file(path)
            ]
            readable += any(isinstance(one, LogReport) for one in found)
            done += 1
    assert readable > COUNT // 10


def test_metadata_that_speaks_of_another_run_is_told_the_same(tmp_path: Path) -> None:
    """Found by the test above: the footer's entry for a run may hold another run's id."""
    (first, *_) = parquet_bytes(tmp_path)
    run = b"wrun_00000000000000000000000001"
    at = first.rindex(run)
    path = tmp_path / "changed.parquet"
    path.write_bytes(first[:at] + run[:-1] + b"7" + first[at + len(run) :])
    assert reader_for(path, None)
    plan = SweepPlan(profile="auto", only=FAST)
    found = reports_of(path, plan)
    assert [one.run_id for one in found if isinstance(one, LogReport)] == [f"wrun_{number:026d}" for number in range(3)]
    assert found == [sweep_log(item, plan) for item in open_file(path) if isinstance(item, Capture)]
