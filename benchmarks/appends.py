"""What an append costs, each as a ratio to a peer in the same run.

    python benchmarks/appends.py [--quick] [--only local|postgres]

* The local store under `main` against bare publication: create a file, write it, link it, unlink it. Goal 0.5 of that.
* Under `seq-final` against the very system calls that it makes, recorded and made again by a plain loop. Goal 0.7.
* PostgreSQL under `seq-final` against pgbench: the same advisory lock and one single-row insert per transaction, on the
  same server, with as many connections. Goal 0.7 per connection.
* The latency of an append when its run holds 100 to 100,000 events, and when the store holds 1,000,000 events of other
  runs. Goal: less than 1.5 times that of the emptiest.

Rates are appends per second; a ratio is the median of pairs measured side by side. Nothing is asserted: a slow machine
is no defect.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from stormctl.history import Event, Inline, ids
from stormctl.worlds import AppendRequest, Snapshot, World, condition_named, open_world
from stormctl.worlds.files import Files
from stormctl.worlds.layout import Layout
from stormctl.worlds.local import LocalOptions
from stormctl.worlds.shapes import event_bytes, journal_bytes, tail_bytes
from stormctl.worlds.store_ops import UNFENCED, Tail

NOW = 1_764_515_687_309
SLICES = 5
TURNS = 12
PER_TURN = 25
PAYLOAD = [1, "a step's input"]


def main() -> None:
    parser = argparse.ArgumentParser(description="What an append costs.")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything, to see that it runs")
    parser.add_argument("--only", choices=["local", "postgres"])
    given = parser.parse_args()
    scale = 10 if given.quick else 1
    sizes = sorted({100, 1_000, 10_000, 100_000 // scale})
    print("Appends, one writer where nothing else is said.")
    if given.only != "postgres":
        local(2000 // scale)
        with a_folder() as folder:
            growth("local", local_grown(folder), sizes, 1_000_000 // scale)
    if given.only != "local":
        with a_server() as dsn:
            if dsn is None:
                print("  postgres: no server can be started here")
                return
            postgres(dsn, 1500 // scale)
            growth("postgres", postgres_grown(dsn), sizes, 1_000_000 // scale)


# -- the requests -----------------------------------------------------------------------------------------------------


def run_id(number: int) -> str:
    return f"wrun_{ids.compose(NOW, number)}"


def create(run: int, number: int) -> AppendRequest:
    """A decision that its writer has read enough for: a step is created."""
    return AppendRequest(
        run_id(run),
        "step_created",
        "bench",
        correlation_id=f"step_{ids.compose(NOW, run << 32 | number)}",
        name="work",
        payload=PAYLOAD,
        snapshot=Snapshot(1 << 40, None, "bench"),
    )


async def begin(world: World, run: int) -> None:
    await world.append(AppendRequest(run_id(run), "run_created", "bench", payload={}))
    await world.append(AppendRequest(run_id(run), "run_started", "bench"))


async def rate(world: World, count: int, writers: int = 1) -> float:
    """Appends per second of so many writers, each on a run of its own."""

    async def write(run: int) -> None:
        for number in range(count // writers):
            await world.append(create(run, number))

    for run in range(writers):
        await begin(world, run)
    began = time.perf_counter()
    await asyncio.gather(*map(write, range(writers)))
    return count // writers * writers / (time.perf_counter() - began)


def show(what: str, pairs: list[tuple[float, float]], of: str, goal: float) -> None:
    """The median ratio of pairs (ours, the peer's), and the median rates."""
    ratio = statistics.median(found / peer for found, peer in pairs)
    found, peer = (statistics.median(column) for column in zip(*pairs, strict=True))
    met = "met" if ratio >= goal else "missed"
    print(f"  {what:<44} {found:8.0f}/s   {ratio:5.2f} of {of} ({peer:.0f}/s)   goal {goal:g}: {met}")


# -- the local store --------------------------------------------------------------------------------------------------


def local(count: int) -> None:
    for name, peer, of, goal in (
        ("main", bare, "create + link", 0.5),
        ("seq-final", again, "its own system calls", 0.7),
    ):
        pairs = []
        for _ in range(SLICES):  # a disk has its moods: each of ours is measured beside one of the peer's
            with a_folder() as folder:
                recorder = Recorder()
                asyncio.run(local_rate(folder / "recorded", name, count // SLICES, files=recorder))
                found = asyncio.run(local_rate(folder / "store", name, count // SLICES, files=Files()))
                pairs.append((found, peer(folder, recorder, count // SLICES)))
        show(f"local {name}", pairs, of, goal)


async def local_rate(folder: Path, name: str, count: int, *, files: Files) -> float:
    options = LocalOptions(storage_scale=0, files=files)
    async with opened("local", folder, name, options=options, storage_scale=0) as world:
        if isinstance(files, Recorder):
            await begin(world, 0)
            files.calls.clear()
            for number in range(count):
                await world.append(create(0, number))
            return 0.0
        return await rate(world, count)


def bare(folder: Path, _recorder: Recorder, count: int) -> float:
    """Publication and nothing else."""
    place = folder / "bare"
    place.mkdir()
    raw = event_bytes(an_event(1, 1))
    began = time.perf_counter()
    for number in range(count):
        path = f"{place}/{number}"
        fd = os.open(f"{path}.tmp", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        os.write(fd, raw)
        os.close(fd)
        os.link(f"{path}.tmp", path)
        os.unlink(f"{path}.tmp")
    return count / (time.perf_counter() - began)


class Recorder(Files):
    """A file layer that writes down what it is asked, system call by system call."""

    _NAMES = frozenset(
        {"write_new", "write_in_place", "rewrite", "append", "link", "rename", "unlink", "read", "read_from", "same"}
    )

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.holders: dict[int, str] = {}

    def __getattribute__(self, name: str) -> Any:
        method = super().__getattribute__(name)
        if name not in Recorder._NAMES:
            return method

        def recorded(*arguments: Any) -> Any:
            self.calls.append((name, arguments))
            return method(*arguments)

        return recorded

    def create(self, path: str) -> int:
        fd = super().create(path)
        self.holders[fd] = path
        return fd


def again(folder: Path, recorder: Recorder, count: int) -> float:
    """The calls of so many appends, made by a loop that does nothing else, in a store of their own."""
    source, target = f"{folder}/recorded", f"{folder}/again"
    asyncio.run(local_rate(Path(target), "seq-final", 4, files=Files()))
    shutil.rmtree(f"{target}/events")
    for name in ("events", "steps", ".locks/steps"):
        shutil.rmtree(f"{target}/{name}", ignore_errors=True)
        os.makedirs(f"{target}/{name}")
    files = Files()
    moved = [(name, tuple(_moved(one, source, target) for one in given)) for name, given in recorder.calls]
    fds = {fd: files.create(f"{_moved(path, source, target)}-again") for fd, path in recorder.holders.items()}
    paths = {
        _moved(path, source, target): _moved(path, source, target) + "-again" for path in recorder.holders.values()
    }
    ready = [
        (getattr(files, name), tuple(paths.get(one, one) if isinstance(one, str) else one for one in given), name)
        for name, given in moved
    ]
    ready = [
        (call, (fds[given[0]], *given[1:]) if name in ("rewrite", "same") else given, name)
        for call, given, name in ready
    ]
    began = time.perf_counter()
    for call, given, _ in ready:
        try:
            call(*given)
        except FileNotFoundError:
            continue  # a row that the append looked for and did not find either
    seconds = time.perf_counter() - began
    return count / seconds


def _moved(value: Any, source: str, target: str) -> Any:
    return value.replace(source, target) if isinstance(value, str) else value


# -- postgres ---------------------------------------------------------------------------------------------------------


def postgres(dsn: str, count: int) -> None:
    for connections in (1, 4):
        pairs = [
            (asyncio.run(postgres_rate(dsn, count * connections // SLICES, connections)), pgbench(dsn, connections))
            for _ in range(SLICES)
        ]
        of = "pgbench" if connections == 1 else f"pgbench, {connections} clients"
        show(f"postgres seq-final, {connections} connection{'s'[: connections - 1]}", pairs, of, 0.7)


_spaces = iter(range(10_000))


async def postgres_rate(dsn: str, count: int, writers: int) -> float:
    async with opened("postgres", None, "seq-final", dsn=dsn, space=f"b{next(_spaces)}", storage_scale=0) as world:
        base = next(_spaces) << 16

        async def write(run: int) -> None:
            for number in range(count // writers):
                await world.append(create(base + run, number))

        for run in range(writers):
            await begin(world, base + run)
        began = time.perf_counter()
        await asyncio.gather(*map(write, range(writers)))
        return count / (time.perf_counter() - began)


SCRIPT = """begin;
select pg_advisory_xact_lock(hashtextextended('run' || :client_id, 0));
insert into bench_events (run_id, id, type, correlation_id, payload_cbor, seq)
values ('run' || :client_id, 'evnt_' || gen_random_uuid(), 'step_created', 'step_' || gen_random_uuid(),
        '\\xa1656e616d656464776f726b', 1);
commit;
"""


def pgbench(dsn: str, clients: int) -> float:
    """Transactions per second of pgbench with the same lock and one insert."""
    import psycopg

    program = shutil.which("pgbench")
    if program is None:
        print("  pgbench is not on this machine")
        return float("nan")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("drop table if exists bench_events")
        connection.execute(
            "create table bench_events (id varchar not null, type varchar not null, correlation_id varchar, created_at "
            "timestamp not null default now(), run_id varchar not null, payload_cbor bytea, seq bigint, "
            "primary key (run_id, id))"
        )
        connection.execute(
            "create unique index on bench_events (run_id, correlation_id, type) where type = 'step_created'"
        )
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(SCRIPT)
        script.flush()
        ran = subprocess.run(
            [program, "-n", "-M", "prepared", "-c", str(clients), "-j", "1", "-T", "2", "-f", script.name, dsn],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
    (line,) = (line for line in ran.stdout.splitlines() if line.startswith("tps"))
    return float(line.split()[2])


# -- growth -----------------------------------------------------------------------------------------------------------

Grown = Callable[[int, int], Coroutine[Any, Any, tuple[World, int]]]


def growth(kind: str, grown: Grown, sizes: list[int], others: int) -> None:
    """Median latency of an append by the events in its run, and by those of other runs in the store.

    All stores are filled first; then they are measured in turns.
    """
    asyncio.run(_growth(kind, grown, sizes, others))


async def _growth(kind: str, grown: Grown, sizes: list[int], others: int) -> None:
    stores = [await grown(size, 0) for size in sizes]
    stores.append(await grown(sizes[0], others))
    times: list[list[float]] = [[] for _ in stores]
    first = 1 << 24
    for turn in range(TURNS):
        for place, (world, run) in enumerate(stores):
            for number in range(PER_TURN):
                began = time.perf_counter()
                await world.append(create(run, first + turn * PER_TURN + number))
                if turn and number >= 2:
                    times[place].append((time.perf_counter() - began) * 1000)
    for world, _ in stores:
        await world.close()
    *medians, crowded = map(statistics.median, times)
    smallest = medians[0]
    for size, median in zip(sizes, medians, strict=True):
        print(f"  {kind} append, {size:>7,} events in the run {'':<10} {median:8.2f} ms   {median / smallest:5.2f} x")
    worst = max(*medians, crowded) / smallest
    print(
        f"  {kind} append, {others:>9,} events of other runs {'':<5} {crowded:8.2f} ms   {crowded / smallest:5.2f} x"
        f"   goal 1.5 x: {'met' if worst < 1.5 else 'missed'}"
    )


def an_event(run: int, number: int) -> Event:
    return Event(
        "step_created",
        run_id(run),
        f"evnt_{ids.compose(NOW + number, number)}",
        f"step_{ids.compose(NOW, run << 32 | number)}",
        number,
        NOW + number,
        "work",
        payload=Inline(PAYLOAD),
        spec=5,
    )


def local_grown(folder: Path) -> Grown:
    async def fill(size: int, others: int) -> tuple[World, int]:
        place = folder / f"{size}-{others}"
        world = open_world("local", place, "seq-final", options=LocalOptions(storage_scale=0), storage_scale=0)
        await begin(world, 1)
        layout = Layout(place)
        plant_files(layout, 1, size)
        last = an_event(1, size)
        Path(layout.counter(run_id(1))).write_bytes(tail_bytes(Tail(size, last.event_id)))
        for run in range(2, 2 + others // 10_000):
            plant_files(layout, run, 10_000)
        return world, 1

    return fill


def plant_files(layout: Layout, run: int, count: int) -> None:
    """Event files of a run, as names of one file (a store reads them only when somebody asks for that log)."""
    source = f"{layout.folder}/planted-{run}"
    journal = bytearray()
    for number in range(3, count + 1):
        if number == 3 or number % 30_000 == 0:  # a file has so many names at most
            source = f"{layout.folder}/planted-{run}-{number}"
            Path(source).write_bytes(event_bytes(an_event(run, number)))
        event = an_event(run, number)
        os.link(source, layout.event(run_id(run), event.event_id or ""))
        journal += journal_bytes((event,), UNFENCED)
    with open(layout.journal(run_id(run)), "ab") as file:
        file.write(journal)


def postgres_grown(dsn: str) -> Grown:
    async def fill(size: int, others: int) -> tuple[World, int]:
        import psycopg

        run = 1_000 + next(_spaces)
        world = open_world(
            "postgres", None, condition_named("seq-final", "postgres"), dsn=dsn, space=f"g{run}", storage_scale=0
        )
        await begin(world, run)
        with psycopg.connect(dsn, autocommit=True) as connection:
            plant_rows(connection, run, size, f"g{run}")
            for other in range(others // 10_000):
                plant_rows(connection, (run << 12) + other + 1, 10_000, f"g{run}")
            connection.execute("analyze stormctl.workflow_events")
        return world, run

    return fill


def plant_rows(connection: Any, run: int, count: int, space: str) -> None:
    """Event rows of a run, like those that the store writes, and its counter."""
    connection.execute(
        "insert into stormctl.workflow_events "
        "(run_id, space, id, type, correlation_id, seq, payload_cbor, spec_version) "
        "select %s, %s, 'evnt_' || lpad(n::text, 26, '0'), 'step_started', 'step_' || lpad(n::text, 26, '0'), n, "
        "'\\xa1656e616d656464776f726b', 5 from generate_series(3, %s) n",
        (run_id(run), space, count),
    )
    connection.execute(
        "update stormctl.workflow_runs set next_event_seq = %s where id = %s and space = %s",
        (max(2, count), run_id(run), space),
    )


# -- stores -----------------------------------------------------------------------------------------------------------


@contextmanager
def a_folder() -> Iterator[Path]:
    """A folder on the disk that holds the current one: a temporary one may be in memory."""
    folder = Path(tempfile.mkdtemp(prefix=".bench-", dir="."))
    try:
        yield folder.resolve()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def a_server() -> Iterator[str | None]:
    from stormctl.errors import StormctlError
    from stormctl.worlds.postgres.migrate import ensure_schema
    from stormctl.worlds.postgres.server import resolve_server

    try:
        server = resolve_server(None)
    except StormctlError as error:
        sys.stderr.write(f"{error}\n")
        yield None
        return
    with server:
        ensure_schema(server.dsn, create=True)
        yield server.dsn


@asynccontextmanager
async def opened(kind: str, folder: Path | None, condition: str, **more: Any) -> AsyncIterator[World]:
    world = open_world(kind, folder, condition_named(condition, kind), **more)
    try:
        yield world
    finally:
        await world.close()


if __name__ == "__main__":
    main()
