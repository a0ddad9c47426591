"""What a worker is given, what it answers, and that the answers are those of the passes that were asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from stormctl.errors import UsageError
from stormctl.targets.sdk.replay import Answer, Pool
from stormctl.targets.sdk.replay.answer import failure_of
from stormctl.targets.sdk.replay.pool import MOST_JOBS
from tests.targets.sdk.replay.tiny import STARTED, WORKFLOW, bundle, record

pytestmark = pytest.mark.usefixtures("node")


def one(folder: Path, body: str, *, steps: int = 2, esm: bool = False, slots: bool = False, **how: object) -> Answer:
    """The answer of one pass over a whole tiny log."""
    log = record(steps, slots=slots, ends=how.pop("ends", ()))
    prefix = how.pop("prefix", log.length)
    with Pool(bundle(folder, body, esm=esm)) as pool:
        return next(pool.passes(log, [prefix], **how))


@pytest.mark.parametrize("esm", [False, True], ids=["CommonJS", "ES module"])
def test_an_answer_tells_what_was_asked_of_the_world(tmp_path: Path, esm: bool) -> None:
    """4.x gives its handler when it is loaded, 5.x at its first delivery."""
    answer = one(tmp_path, COUNTS, esm=esm)
    (asked,) = answer.asked
    assert (asked.type, asked.correlation_id, asked.name) == ("step_created", "step_2", "step//./tiny//add")
    assert (asked.payload, asked.data) == (b"devl[2]", {"extra": [1, {"$bytes": "AQI="}]})
    (queued,) = answer.queued
    assert (queued.queue, queued.step_id, queued.delay_s, queued.divergence) == ("__wkf_step_add", "step_2", 2, None)
    assert (answer.ended, answer.error, answer.guard, answer.prefix) == ("returned", None, None, 6)
    assert answer.calls == {
        "events.create:run_started": 1,
        "events.list": 1,
        "events.create:step_created": 1,
        "queue": 1,
    }
    assert answer.ms > 0


COUNTS = """
  const done = events.filter((event) => event.eventType === 'step_completed');
  const input = bytes(done.length);
  await next('step_created', 'step_' + done.length,
    { stepName: 'step//./tiny//add', input, extra: [1, new Uint8Array([1, 2])] });
  await world().queue('__wkf_step_add', { stepId: 'step_' + done.length }, { delaySeconds: 2 });
"""


def test_the_engine_is_given_the_run_its_types_and_a_budget_that_is_used_up(tmp_path: Path) -> None:
    said = """
      console.log(JSON.stringify({
        queue: metadata.queueName, count: message.replayDivergence.count, first: message.replayDivergence.eventId,
        run: [run.workflowName, run.deploymentId, run.specVersion, run.status],
        started: [+run.startedAt, run.startedAt instanceof Date],
        input: [run.input instanceof Uint8Array, !Buffer.isBuffer(run.input), Buffer.from(run.input).toString()],
        created: [events[0].createdAt instanceof Date, +events[0].createdAt, events[0].eventType],
        key: await world().getEncryptionKeyForRun(run) === undefined,
        result: Buffer.from(events.at(-1).eventData.result).toString(),
        name: events.at(-1).eventData.stepName,
        runGet: (await world().runs.get(runId)).runId === runId,
        batch: typeof world().events.createBatch,
        then: typeof world().then,
      }));
    """
    answer = one(tmp_path, said)
    assert json.loads(answer.said[0]) == {
        "queue": f"__wkf_workflow_{WORKFLOW}",
        "count": 3,
        "first": "evnt_01M8PJ0K000000000000000001",
        "run": [WORKFLOW, "dpl_tiny", 3, "running"],
        "started": [STARTED, True],
        "input": [True, True, "devl[[1],7]"],
        "created": [True, STARTED + 10, "run_created"],
        "key": True,
        "result": "devl[1]",
        "name": "step//./tiny//add",
        "runGet": True,
        "batch": "undefined",
        "then": "undefined",
    }


TELLS = "console.log(events.map((event) => event.eventId.slice(-2) + event.eventType[4]).join(' '));"


@pytest.mark.parametrize(
    ("slots", "ends", "prefix", "hidden", "seen"),
    [
        (False, (), 4, (), "01c 02s 03_ 04_"),
        (False, (), 0, (), ""),
        (False, (), 99, (), "01c 02s 03_ 04_ 05_ 06_"),
        (False, (), 6, (2, 4), "01c 02s 04_ 06_"),
        (False, (4, 6), 8, (), "01c 02s 03_ 05_ 07_ 08_"),
        (False, (4,), 6, (4,), "01c 02s 03_ 06_"),
        (True, (5,), 8, (), "01c 02s 03_ 04_"),
        (True, (), 6, (3,), "01c 02s 03_ 04_ 05_"),
    ],
    ids=[
        "the first events",
        "none",
        "no more than there are",
        "without the hidden ones",
        "ends are passed over where ids are ULIDs",
        "hidden ones are counted among all",
        "a log of slots stops at its first end",
        "slots stay dense where one is hidden",
    ],
)
def test_the_engine_sees_the_prefix(
    tmp_path: Path, slots: bool, ends: tuple[int, ...], prefix: int, hidden: tuple[int, ...], seen: str
) -> None:
    answer = one(tmp_path, TELLS, slots=slots, ends=ends, prefix=prefix, hidden=frozenset(hidden))
    assert " ".join(answer.said) == seen
    assert answer.hidden == frozenset(hidden)


def test_a_slot_that_was_numbered_anew_is_named_as_the_log_has_it(tmp_path: Path) -> None:
    fails = """
      const zlib = require('node:zlib');
      const text = 'diverged 4 times; latest divergent event was ' + events.at(-1).eventId + '. Last divergence: it is';
      const devalue = Buffer.from('devl' + JSON.stringify([text]));
      await next('run_failed', undefined, { errorCode: 'CORRUPTED_EVENT_LOG', error: { message: text } });
      await next('run_failed', undefined, { errorCode: 'X', error: new Uint8Array(devalue) });
      const zipped = Buffer.concat([Buffer.from('gzip'), zlib.gzipSync(devalue)]);
      await next('run_failed', undefined, { errorCode: 'Y', error: new Uint8Array(zipped) });
    """
    answer = one(tmp_path, fails, slots=True, hidden=frozenset({2}))
    for asked in answer.asked:
        failure = failure_of(asked)
        assert failure.divergent_event == "evnt_00000000000000000000000006"
        assert failure.divergence == "it is"
    assert answer.failure is not None
    assert answer.failure.code == "CORRUPTED_EVENT_LOG"


@pytest.mark.parametrize(
    ("clock", "now"), [("start", STARTED), ("asof", STARTED + 40), ("real", None)], ids=["start", "as of", "real"]
)
def test_the_clock_stands_still_during_a_pass(tmp_path: Path, clock: str, now: int | None) -> None:
    waits = "const a = Date.now(); await new Promise((go) => setTimeout(go, 15)); console.log(a, Date.now() - a);"
    answer = one(tmp_path, waits, prefix=4, clock=clock)
    first, passed = map(int, answer.said[0].split())
    if now is not None:
        assert (first, passed) == (now, 0)
    else:
        assert first > STARTED
        assert passed >= 10


def test_what_is_acknowledged_is_in_the_log_from_then_on(tmp_path: Path) -> None:
    """An engine that reads on until its attribute has come would read for ever otherwise."""
    loops = """
      const first = await next('attr_set', 'attr_1', { changes: [] });
      let read;
      do read = await list(page.cursor); while (!read.data.length);
      console.log(read.data.map((event) => event.eventType + event.eventId.slice(-3)).join(), read.hasMore,
        read.cursor === first.event.eventId, +first.event.createdAt);
      await next('hook_created', 'hook_1', { token: 'secret', isWebhook: false });
      await next('wait_created', 'wait_1', { resumeAt: new Date(1234) });
      console.log((await list(page.cursor)).data.length);
    """
    answer = one(tmp_path, loops, steps=1, slots=True)
    assert answer.said == (f"attr_set005 false true {STARTED + 40}", "3")
    assert [asked.type for asked in answer.asked] == ["attr_set", "hook_created", "wait_created"]
    assert answer.asked[1].token == "secret"
    assert answer.asked[1].data == {"isWebhook": False}
    assert answer.asked[2].resume_at == 1234
    assert answer.calls["events.list+cursor"] == 2


def test_no_body_of_a_step_runs(tmp_path: Path) -> None:
    starts = """
      const all = [1, 2].map((n) => next('step_started', 'step_' + n, { stepName: 's', input: bytes(n) }));
      await Promise.all(all);
      await next('step_completed', 'step_1', { result: bytes(1) });
    """
    answer = one(tmp_path, starts)
    assert (answer.ended, answer.error) == ("stopped", None)
    assert [(asked.type, asked.payload) for asked in answer.asked] == [
        ("step_started", b"devl[1]"),
        ("step_started", b"devl[2]"),
    ]


def test_no_wait_ends_in_a_replay(tmp_path: Path) -> None:
    body = """
      try { await next('wait_completed', 'wait_1', { resumeAt: new Date(5) }); }
      catch (error) { console.log(error.name); }
    """
    answer = one(tmp_path, body)
    assert answer.said == ("EntityConflictError",)
    assert (answer.ended, answer.asked[0].resume_at) == ("returned", 5)


def test_an_error_of_the_engine_is_told(tmp_path: Path) -> None:
    answer = one(tmp_path, "throw new TypeError('no such\\nthing', { cause: new Error('deep') });")
    assert (answer.ended, answer.error, answer.guard) == ("threw", "TypeError: no such thing (deep)", None)


def test_an_error_that_nobody_catches_ends_its_pass(tmp_path: Path) -> None:
    body = "setTimeout(() => { throw new Error('astray'); }, 1); await new Promise(() => {});"
    answer = one(tmp_path, body)
    assert (answer.ended, answer.error) == ("threw", "Error: astray")


def test_what_comes_after_the_end_of_a_pass_is_refused_and_counts_for_no_other(tmp_path: Path) -> None:
    late = """
      if (events.length === 2) {
        const again = async () => {
          await new Promise((go) => setTimeout(go, 5));
          try { await next('step_created', 'late', { stepName: 'late' }); } catch { /* as it should be */ }
          return again();
        };
        again();
        return;
      }
      await new Promise((go) => setTimeout(go, 40));
      await next('step_created', 'mine', { stepName: 'mine' });
    """
    with Pool(bundle(tmp_path, late)) as pool:
        first, second = pool.passes(record(1), [2, 4])
    assert first.asked == ()
    assert [asked.correlation_id for asked in second.asked] == ["mine"]
    assert second.calls["events.create:step_created"] == 1


def test_what_the_engine_prints_does_not_mix_with_the_answers(tmp_path: Path) -> None:
    prints = """
      console.log('{"ready": 1}'); console.error('%s!', 'mind'); console.table([[1]]); console.info({ a: 1 });
      process.stdout.write('{"id": 7}\\n'); process.stderr.write('b\\n');
      require('node:fs').writeSync(1, '{"id": 8}\\n'); require('node:fs').writeFileSync(1, 'c\\n');
      await new Promise((go) => require('node:fs').write(2, 'd\\n', go));
    """
    answer = one(tmp_path, prints)
    assert (answer.ended, answer.error) == ("returned", None)
    said = "\n".join(answer.said)
    assert all(word in said for word in ('{"ready": 1}', "mind!", "{ a: 1 }", '{"id": 7}', '{"id": 8}', "c", "d"))


def test_what_a_pass_says_is_bounded(tmp_path: Path) -> None:
    answer = one(tmp_path, "for (let i = 0; i < 5000; i++) console.log('x'.repeat(2000) + i);")
    assert len(answer.said) <= 40
    assert max(map(len, answer.said)) <= 500


# -- many passes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [1, 3])
def test_answers_come_in_the_order_asked_however_long_each_takes(tmp_path: Path, jobs: int) -> None:
    body = """
      await new Promise((go) => setTimeout(go, (events.length * 7) % 11));
      await next('attr_set', String(events.length));
    """
    wanted = [*range(2, 22), 3, 3, 2]
    with Pool(bundle(tmp_path, body), jobs=jobs) as pool:
        answers = list(pool.passes(record(10), wanted))
        assert len(pool.pids) == jobs
    assert [answer.prefix for answer in answers] == wanted
    assert [int(answer.asked[0].correlation_id or "") for answer in answers] == wanted


def test_prefixes_are_read_only_a_little_ahead(tmp_path: Path) -> None:
    taken = []

    def endless() -> Iterator[int]:
        for number in count(2):
            taken.append(number)
            yield number % 4 + 2

    with Pool(bundle(tmp_path), jobs=2) as pool:
        answers = pool.passes(record(2), endless())
        got = [next(answers).prefix for _ in range(20)]
        assert len(taken) < 20 + 40
        answers.close()
        assert got == [number % 4 + 2 for number in range(2, 22)]
        assert [answer.prefix for answer in pool.passes(record(1), [2, 3])] == [2, 3]


def test_no_prefixes_start_no_worker(tmp_path: Path) -> None:
    with Pool(bundle(tmp_path)) as pool:
        assert list(pool.passes(record(1), [])) == []
        assert pool.pids == []


def test_one_prefix_starts_one_worker(tmp_path: Path) -> None:
    with Pool(bundle(tmp_path), jobs=4) as pool:
        assert len(list(pool.passes(record(1), [2]))) == 1
        assert len(pool.pids) == 1


def test_several_calls_may_be_under_way_and_several_logs_on_one_worker(tmp_path: Path) -> None:
    with Pool(bundle(tmp_path, "await next('attr_set', runId + events.length);")) as pool:
        logs = [record(steps) for steps in range(1, 8)]
        for outer in pool.passes(logs[0], [2, 3, 4, 2, 3, 4]):
            for log in logs:
                (inner,) = pool.passes(log, [log.length])
                assert str(inner.asked[0].correlation_id).endswith(f"N{log.length}")
            assert str(outer.asked[0].correlation_id).endswith(f"N{outer.prefix}")
        assert len(pool.pids) == 1


def test_a_call_that_is_given_up_does_not_count_against_the_next(tmp_path: Path) -> None:
    with Pool(bundle(tmp_path, "await new Promise((go) => setTimeout(go, 30));")) as pool:
        for _ in range(5):
            assert next(pool.passes(record(3), range(2, 9))).prefix == 2
        assert [answer.prefix for answer in pool.passes(record(3), [3])] == [3]
        assert len(pool.pids) == 1


def test_a_pool_that_was_closed_starts_anew(tmp_path: Path) -> None:
    pool = Pool(bundle(tmp_path))
    with pool:
        list(pool.passes(record(1), [2]))
    with pool:
        assert len(list(pool.passes(record(1), [2, 3]))) == 2


def test_switches_of_the_sdk_reach_the_engine_and_ours_go_before_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKFLOW_TURBO", "1")
    monkeypatch.setenv("WORKFLOW_TARGET_WORLD", "@workflow/world-postgres")
    monkeypatch.setenv("NODE_OPTIONS", "--require ./nothing.cjs")
    names = ["WORKFLOW_TURBO", "WORKFLOW_TARGET_WORLD", "WORKFLOW_LOG_ORDER_DRAWS", "NODE_OPTIONS"]
    body = f"console.log({names}.map((name) => String(process.env[name])).join());"
    with Pool(bundle(tmp_path, body), environment={"WORKFLOW_LOG_ORDER_DRAWS": "0"}) as pool:
        (answer,) = pool.passes(record(1), [2])
    assert answer.said == ("0,undefined,0,undefined",)


def test_what_cannot_be_asked_for_is_said_before_anything_starts(tmp_path: Path) -> None:
    found = bundle(tmp_path)
    with pytest.raises(UsageError, match="'noon' is no clock"):
        Pool(found).passes(record(1), [2], clock="noon")
    for jobs in (0, MOST_JOBS + 1):
        with pytest.raises(UsageError, match=f"{jobs} workers"):
            Pool(found, jobs=jobs)
