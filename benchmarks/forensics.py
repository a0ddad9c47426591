"""How fast logs are swept: 1,000,000 events in 2,000 runs, from NDJSON and from Parquet, on one core.

    python benchmarks/forensics.py [EVENTS]

The logs are made here, from a seed, in a temporary folder (some 400 MB). The reference is one thread of DuckDB that
does the checks for dense positions, for ids and creates that stand twice, and for the order of ids in SQL over the same
files; ours hold the whole life of every step, wait and hook against its rules besides. Seconds are CPU seconds of a
process of its own for each line, its start and a first small log left out. No goal is asserted: see ``_measure``.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EVENTS, PER_RUN = 1_000_000, 500
NDJSON_GOAL, PARQUET_GOAL, ALL_GOAL = 500_000, 1_500_000, 100_000
PEER_GOAL = 1.5
MEMORY_GOAL_MB = 600
#: So many times the events may take this much longer than so many times the time.
LINEAR_GOAL = 1.15
#: The parts of all logs that are measured besides, and by how much each is smaller.
PARTS = {"quarter": 4, "half": 2}
BULK = ("dense", "id-order", "lifecycle")
#: All sweeps take longer, so they are given this share of the runs.
SHARE = 8
#: How often each measurement is made; the best says most on a machine that is shared.
GOES = 3
START_MS = 1_767_355_200_000


def main() -> None:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS
    with tempfile.TemporaryDirectory(prefix="stormctl-bench-") as name:
        folder = Path(name)
        began = time.process_time()
        runs = make(folder / "whole", events // PER_RUN)
        for name, share in PARTS.items():
            first_of(folder / "whole", folder / name, runs // share)
        make(folder / "first", 2)
        make(folder / "part", max(2, events // PER_RUN // SHARE))
        print(f"{runs * PER_RUN} events in {runs} runs, made in {time.process_time() - began:.0f} s of CPU.")
        duck = measured("duckdb", folder / "whole")
        ours = measured("bulk", folder / "whole" / "logs")
        parts = {share: measured("bulk", folder / name / "logs") for name, share in PARTS.items()}
        told("NDJSON, " + ", ".join(BULK), ours, goal=NDJSON_GOAL, peer=duck)
        if duck is not None:
            told("NDJSON, the reference: DuckDB", duck)
        duck = measured("duckdb-parquet", folder / "whole")
        packed = measured("bulk", folder / "whole" / "logs.parquet")
        told("Parquet, " + ", ".join(BULK), packed, goal=PARQUET_GOAL, peer=duck)
        if duck is not None:
            told("Parquet, the reference: DuckDB", duck)
        every = measured("all", folder / "part" / "logs")
        told("NDJSON, all structural sweeps", every, goal=ALL_GOAL)
        for share, part in parts.items():
            if ours and part:
                growth = ours["cpu"] / part["cpu"] / (ours["events"] / part["events"])
                verdict = "met" if growth <= LINEAR_GOAL else "missed"
                print(
                    f"  {ours['events']:,} events take {share} times what {part['events']:,} take x {growth:.2f}   "
                    f"goal {LINEAR_GOAL:g}: {verdict}"
                )
        peaks = [found["peak_mb"] for found in (ours, packed, every) if found]
        verdict = "met" if max(peaks) <= MEMORY_GOAL_MB else "missed"
        print(f"  peak memory {max(peaks):.0f} MB   goal {MEMORY_GOAL_MB} MB: {verdict}")


def measured(what: str, path: Path) -> dict[str, Any] | None:
    """What a process of its own says of one measurement, the best of some goes, ours and the reference alike; None
    where it lacks what it needs."""
    found: list[dict[str, Any]] = []
    for _ in range(GOES):
        made = subprocess.run([sys.executable, __file__, f"--{what}", str(path)], capture_output=True, text=True)
        if made.returncode == 3:
            print(f"  {made.stdout.strip()}")
            return None
        if made.returncode:
            sys.exit(made.stderr)
        found.append(json.loads(made.stdout))
    best = min(found, key=lambda one: one["cpu"])
    return {**best, "peak_mb": max(one["peak_mb"] for one in found)}


def told(
    what: str, found: dict[str, Any] | None, *, goal: int | None = None, peer: dict[str, Any] | None = None
) -> None:
    if found is None:
        return
    rate = found["events"] / found["cpu"]
    line = f"  {what:<44} {rate:>10,.0f} events/s  {found['cpu']:6.2f} s CPU"
    if goal is not None:
        line += f"   goal {goal:,}: {'met' if rate >= goal else 'missed'}"
    if peer is not None:
        ratio = found["cpu"] / peer["cpu"]
        line += f"   {ratio:.2f} x the reference, goal {PEER_GOAL:g}: {'met' if ratio <= PEER_GOAL else 'missed'}"
    print(line)


# -- what a process of its own measures -------------------------------------------------------------------------------


def measure(what: str, path: Path) -> None:
    sys.path.insert(0, str(ROOT))
    if what.startswith("--duckdb"):
        try:
            import duckdb
        except ImportError:
            print("DuckDB is not installed, so there is no reference (pip install duckdb)")
            sys.exit(3)
        work: Any = lambda: in_duckdb(duckdb, path, parquet=what.endswith("parquet"))  # noqa: E731
    else:
        import pyarrow.parquet  # noqa: F401

        from stormctl.sweeps import LogReport, SweepPlan, Verdict, sweep_paths

        plan = SweepPlan(profile="auto", only=BULK if what == "--bulk" else ())

        list(sweep_paths([path.parent.parent / "first" / path.name], plan))

        def work() -> int:
            events = 0
            for log in sweep_paths([path], plan):
                assert isinstance(log, LogReport), log
                # without a workload the sweeps of scenarios have no answer, and the rest must find nothing fatal
                assert log.verdict is not Verdict.VIOLATED, log.findings
                events += log.events
            return events

    began = time.process_time()
    events = work()
    took = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"events": events, "cpu": took, "peak_mb": peak}))


def in_duckdb(duckdb: Any, folder: Path, *, parquet: bool) -> int:
    """The three checks in SQL. How many events there were; a log that is not clean is an error."""
    with duckdb.connect() as base:
        base.execute("set threads to 1")
        source = f"(select * from read_parquet('{folder}/logs.parquet'))"
        if not parquet:
            columns = "{position: 'BIGINT', type: 'VARCHAR', event_id: 'VARCHAR', correlation_id: 'VARCHAR'}"
            read = f"read_json('{folder}/logs/*.ndjson', format='newline_delimited', columns={columns}, filename=true)"
            source = f"(select *, filename as run_id from {read})"
        (found,) = base.execute(
            f"""
            with runs as (
                select run_id, count(*) as events, min(position) as first, max(position) as last,
                       count(distinct position) as places, count(distinct event_id) as ids,
                       count(correlation_id) filter (type in ('step_created', 'wait_created', 'hook_created')) as made,
                       count(distinct correlation_id)
                           filter (type in ('step_created', 'wait_created', 'hook_created')) as entities,
                       list(event_id order by position) as by_place
                from {source} group by run_id
            )
            select sum(events)::bigint, count(*) filter (
                first != 1 or last != events or places != events or ids != events or made != entities
                or by_place != list_sort(by_place))
            from runs
            """
        ).fetchall()
    assert found[1] == 0, found
    return int(found[0])


# -- making the logs --------------------------------------------------------------------------------------------------


def make(folder: Path, runs: int) -> int:
    """Write so many runs, each as NDJSON with its meta file, and all of them as one Parquet file."""
    sys.path.insert(0, str(ROOT))
    import pyarrow as pa
    import pyarrow.parquet as pq

    from stormctl import times
    from stormctl.readers import parquet

    logs = folder / "logs"
    logs.mkdir(parents=True)
    about: dict[str, Any] = {}
    schema = parquet.schema(pa)
    with pq.ParquetWriter(folder / "logs.parquet", schema, compression="zstd") as writer:
        held: list[dict[str, Any]] = []
        for number in range(runs):
            run_id, rows = a_run(number)
            about[run_id] = a_meta(run_id, len(rows))
            (logs / f"{run_id}.meta.json").write_text(json.dumps(about[run_id], indent=2) + "\n")
            text = "".join(f"{json.dumps(row, separators=(',', ':'))}\n" for row in rows)
            (logs / f"{run_id}.ndjson").write_text(text)
            for row in rows:
                row["run_id"] = run_id
                if "data" in row:
                    row["data"] = json.dumps(row["data"])
                for key in ("created_at", "resume_at"):
                    if key in row:
                        row[key] = times.ms_of(row[key])
            held += rows
            if len(held) >= parquet.GROUP_ROWS:
                writer.write_table(pa.Table.from_pylist(held, schema=schema))
                held.clear()
        if held:
            writer.write_table(pa.Table.from_pylist(held, schema=schema))
        writer.add_key_value_metadata({parquet.RUNS_KEY: json.dumps(about).encode()})
    return runs


def first_of(whole: Path, folder: Path, runs: int) -> None:
    """A folder with the first runs of another, which are there by name only once more."""
    logs = folder / "logs"
    logs.mkdir(parents=True)
    for log in sorted((whole / "logs").glob("*.ndjson"))[:runs]:
        for path in (log, log.with_suffix(".meta.json")):
            (logs / path.name).hardlink_to(path)


def a_meta(run_id: str, events: int) -> dict[str, Any]:
    evidence = {"origin": "made", "missing": ["commit_stamps", "audit"], "omitted": [], "truncated": False}
    run = {"status": "completed", "workload": None, "input": {}, "output": {"rounds": events}}
    return {
        "schema": "stormctl.log/1", "run_id": run_id, "events": events, "run": run,
        "evidence": {**evidence, "live": False, "notes": []}, "audit": False, "data": {},
    }  # fmt: skip


def a_run(number: int) -> tuple[str, list[dict[str, Any]]]:
    """A run of steps that overlap, some with a wait, and one hook that is received now and then."""
    from stormctl import times
    from stormctl.history import ids

    draw = random.Random(number)
    ms = START_MS + number * 1000
    run_id = f"wrun_{ids.compose(ms, number + 1)}"
    base = ids.seeded_base(run_id)
    rows: list[dict[str, Any]] = []
    open_ones: list[tuple[str, ...]] = []
    rank = 0

    def add(event_type: str, entity: str | None = None, **more: Any) -> None:
        nonlocal ms
        ms += draw.randrange(1, 20)
        row: dict[str, Any] = {"position": len(rows) + 1, "type": event_type}
        row["event_id"] = f"evnt_{ids.compose(ms, draw.getrandbits(79))}"
        if entity is not None:
            row["correlation_id"] = entity
        row["created_at"] = times.iso(ms)
        rows.append({**row, **more})

    def drawn(kind: str) -> str:
        nonlocal rank
        rank += 1
        return f"{kind}_{ids.body_of(base + rank)}"

    add("run_created")
    add("run_started")
    hook = drawn("hook")
    add("hook_created", hook, token=f"bench:{number}")
    while len(rows) < PER_RUN - 2 - 3 * len(open_ones):
        kind = draw.random()
        if kind < 0.3 and len(open_ones) < 12:
            step, name = drawn("step"), draw.choice(("settleStep", "chargeStep", "shipStep"))
            add("step_created", step, name=name, digest=f"{draw.getrandbits(64):016x}")
            open_ones.append(("step_started", step, name))
        elif kind < 0.35:
            wait = drawn("wait")
            due = times.iso(ms + 500)
            add("wait_created", wait, resume_at=due)
            open_ones.append(("wait_completed", wait, due))
        elif kind < 0.37:
            add("hook_received", hook, digest=f"{draw.getrandbits(64):016x}")
        elif open_ones:
            advance(open_ones, draw.randrange(len(open_ones)), add, draw)
    while open_ones and len(rows) < PER_RUN - 2:
        advance(open_ones, 0, add, draw)
    while len(rows) < PER_RUN - 2:
        add("hook_received", hook, digest=f"{draw.getrandbits(64):016x}")
    add("hook_disposed", hook)
    add("run_completed", digest=f"{draw.getrandbits(64):016x}")
    return run_id, rows


def advance(open_ones: list[tuple[str, ...]], at: int, add: Any, draw: random.Random) -> None:
    """The next event of one of the entities that are open."""
    event_type, entity, extra = open_ones.pop(at)
    if event_type == "step_started":
        add(event_type, entity, name=extra, data={"attempt": 1})
        open_ones.append(("step_completed", entity, extra))
    elif event_type == "step_completed":
        add(event_type, entity, name=extra, digest=f"{draw.getrandbits(64):016x}")
    else:
        add(event_type, entity, resume_at=extra)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        measure(sys.argv[1], Path(sys.argv[2]))
    else:
        main()
