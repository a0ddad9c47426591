"""The SQL of the store. ``$1`` is the run and ``$2`` the space in nearly every statement; values are binary.

What decides anything is in ``worlds.pipeline`` and ``worlds.rules``: here is how each thing is said in SQL.
"""

from __future__ import annotations

from stormctl.worlds.postgres.pipe import Sql
from stormctl.worlds.postgres.shapes import (
    EVENT_COLUMNS,
    HOOK_COLUMNS,
    RUN_COLUMNS,
    STEP_COLUMNS,
    TAIL_COLUMNS,
    WAIT_COLUMNS,
)
from stormctl.worlds.rows import Kind

_S = "stormctl"

BEGIN = Sql("begin")
COMMIT = Sql("commit")
ROLLBACK = Sql("rollback")
#: the key that foreign tools of the seq branch lock too
LOCK = Sql("select pg_advisory_xact_lock(hashtextextended($1::text, 0))::text")

TABLE = {Kind.STEP: "workflow_steps", Kind.WAIT: "workflow_waits", Kind.HOOK: "workflow_hooks"}
ID_COLUMN = {Kind.STEP: "step_id", Kind.WAIT: "wait_id", Kind.HOOK: "hook_id"}
COLUMNS = {Kind.STEP: STEP_COLUMNS, Kind.WAIT: WAIT_COLUMNS, Kind.HOOK: HOOK_COLUMNS}

# -- runs

READ_RUN = Sql(f"select {RUN_COLUMNS} from {_S}.workflow_runs where id = $1 and space = $2")
READ_RUN_AND_TAIL = Sql(f"select {TAIL_COLUMNS}, {RUN_COLUMNS} from {_S}.workflow_runs where id = $1 and space = $2")
READ_TAIL = Sql(f"select {TAIL_COLUMNS} from {_S}.workflow_runs where id = $1 and space = $2")
_RUN_SET = (
    "status = excluded.status, updated_at = excluded.updated_at, created_at = excluded.created_at, "
    "name = excluded.name, input_cbor = excluded.input_cbor, output_cbor = excluded.output_cbor, "
    "started_at = excluded.started_at, completed_at = excluded.completed_at, error_code = excluded.error_code, "
    "error_cbor = excluded.error_cbor, attributes = excluded.attributes, "
    "execution_context_cbor = excluded.execution_context_cbor, deployment_id = excluded.deployment_id"
)
_PUT_RUN = f"""
insert into {_S}.workflow_runs as r ({RUN_COLUMNS}, spec_version, space)
values ($1, $2::{_S}.status, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::jsonb, $13, $14, $15, $16)
on conflict (id, space) do update set {_RUN_SET}
"""
PUT_RUN = Sql(_PUT_RUN)
PUT_RUN_UNLESS_ENDED = Sql(f"{_PUT_RUN} where r.status in ('pending', 'running') returning r.id")
DROP_RUN = Sql(f"delete from {_S}.workflow_runs where id = $1 and space = $2")
WRITE_TAIL = Sql(
    f"update {_S}.workflow_runs set next_event_seq = $3, last_event_id = $4, last_fenced_seq = $5, "
    "writer_snapshot = $6, writer_base_count = $7, in_band = $8 where id = $1 and space = $2"
)

# -- steps, waits, hooks


def _look(kind: Kind | None) -> Sql:
    """All that the append of one event will read, in one row: the claims on its entity ($4), the end of the log, the
    run, the entity ($3: its id in its table), each null where there is none."""

    def of(table: str, columns: str) -> str:
        return ", ".join(f"{table}.{name.strip()}" for name in columns.split(","))

    entity = f", {of('x', COLUMNS[kind])}" if kind is not None else ""
    joined = (
        f"left join {_S}.{TABLE[kind]} x on x.run_id = $1 and x.space = $2 and x.{ID_COLUMN[kind]} = $3"
        if kind is not None
        else ""
    )
    return Sql(f"""
    select (select string_agg(kind || ' ' || what, ' ') from {_S}.claims where run_id = $1 and space = $2 and id = $4),
        $3::varchar, {of("r", TAIL_COLUMNS)}, {of("r", RUN_COLUMNS)}{entity}
    from (select) one left join {_S}.workflow_runs r on r.id = $1 and r.space = $2 {joined}
    """)


def _read(kind: Kind, more: str = "") -> Sql:
    return Sql(
        f"select {COLUMNS[kind]} from {_S}.{TABLE[kind]} "
        f"where run_id = $1 and space = $2 and {ID_COLUMN[kind]} = $3{more}"
    )


LOOK = {kind: _look(kind) for kind in (None, *TABLE)}
READ_ENTITY = {kind: _read(kind) for kind in TABLE}
READ_ENTITY_LOCKED = {kind: _read(kind, " for update") for kind in TABLE}
READ_ENTITIES = {
    kind: Sql(
        f"select {COLUMNS[kind]} from {_S}.{TABLE[kind]} "
        f"where run_id = $1 and space = $2 and {ID_COLUMN[kind]} = any($3::varchar[])"
    )
    for kind in TABLE
}
DROP_ENTITY = {
    kind: Sql(f"delete from {_S}.{TABLE[kind]} where run_id = $1 and space = $2 and {ID_COLUMN[kind]} = $3")
    for kind in TABLE
}
PUT_STEP = Sql(f"""
insert into {_S}.workflow_steps ({STEP_COLUMNS}, spec_version, space)
values ($1, $2, $3, $4::{_S}.step_status, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
on conflict (run_id, space, step_id) do update set
    step_name = excluded.step_name, status = excluded.status, attempt = excluded.attempt,
    created_at = excluded.created_at, updated_at = excluded.updated_at, started_at = excluded.started_at,
    completed_at = excluded.completed_at, retry_after = excluded.retry_after, input_cbor = excluded.input_cbor,
    output_cbor = excluded.output_cbor, error_cbor = excluded.error_cbor
""")
PUT_WAIT = Sql(f"""
insert into {_S}.workflow_waits ({WAIT_COLUMNS}, spec_version, space)
values ($1, $2, $3::{_S}.wait_status, $4, $5, $6, $7, $8, $9)
on conflict (run_id, space, wait_id) do update set
    status = excluded.status, resume_at = excluded.resume_at, created_at = excluded.created_at,
    updated_at = excluded.updated_at, completed_at = excluded.completed_at
""")
PUT_HOOK = Sql(f"""
insert into {_S}.workflow_hooks ({HOOK_COLUMNS}, owner_id, project_id, environment, is_webhook, spec_version, space)
values ($1, $2, $3, $4, $5, 'postgres-owner', 'postgres-project', 'postgres', false, $6, $7)
on conflict (run_id, space, hook_id) do update set
    token = excluded.token, created_at = excluded.created_at, metadata_cbor = excluded.metadata_cbor
""")
PUT_ENTITY = {Kind.STEP: PUT_STEP, Kind.WAIT: PUT_WAIT, Kind.HOOK: PUT_HOOK}
#: three statements, so that a run that ends is rid of everything at one point
DROP_WAITS = Sql(f"delete from {_S}.workflow_waits where run_id = $1 and space = $2")
DROP_HOOKS = Sql(f"delete from {_S}.workflow_hooks where run_id = $1 and space = $2")
DROP_TOKENS = Sql(f"delete from {_S}.tokens where run_id = $1 and space = $2")

# -- claims and tokens

CLAIM = Sql(
    f"insert into {_S}.claims (run_id, space, id, kind, what) values ($1, $2, $3, $4, $5) "
    "on conflict do nothing returning true"
)
HAS_CLAIM = Sql(
    f"select true from {_S}.claims where run_id = $1 and space = $2 and id = $3 and kind = $4 and what = $5"
)
DROP_CLAIM = Sql(f"delete from {_S}.claims where run_id = $1 and space = $2 and id = $3 and kind = $4 and what = $5")
READ_CLAIMS = Sql(
    f"select id, kind, what from {_S}.claims where run_id = $1 and space = $2 and id = any($3::varchar[])"
)
#: Waits for a claimer that is under way. The update that changes nothing makes the statement reply who holds it.
CLAIM_TOKEN = Sql(f"""
insert into {_S}.tokens as t (token, space, run_id, hook_id, event_id) values ($1, $2, $3, $4, $5)
on conflict (token, space) do update set token = t.token returning t.run_id, t.hook_id, t.event_id
""")
RELEASE_TOKEN = Sql(f"delete from {_S}.tokens where token = $1 and space = $2 and run_id = $3 and hook_id = $4")
#: As world-postgres looks before it inserts the hook: nothing keeps two from looking at the same time.
LOOK_FOR_TOKEN = Sql(
    f"select run_id, hook_id from {_S}.workflow_hooks where token = $1 and space = $2 "
    "order by created_at, hook_id limit 1"
)
DROP_HOOK_OF_TOKEN = Sql(
    f"delete from {_S}.workflow_hooks where token = $1 and space = $2 and run_id = $3 and hook_id = $4"
)

# -- events

_INSERT = f"""
insert into {_S}.workflow_events (
    id, type, correlation_id, created_at, run_id, payload_cbor, spec_version, seq,
    fenced, credit_key, credit_base, in_band, fence_count, writer_id, sole, space
)
values ($1, $2, $3, coalesce($4::timestamp, now()::timestamp), $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
"""
INSERT_EVENT = Sql(_INSERT)
INSERT_FREE_EVENT = Sql(f"{_INSERT} on conflict do nothing returning true")
HAS_EVENT = Sql(f"select true from {_S}.workflow_events where run_id = $1 and space = $2 and id = $3")
_EVENTS = f"select {EVENT_COLUMNS} from {_S}.workflow_events where run_id = $1 and space = $2"
#: What was written before events had a seq comes first, in the order of then.
BY_SEQ = Sql(f"{_EVENTS} order by seq nulls first, id limit $3")
BY_SEQ_AFTER = Sql(f"{_EVENTS} and seq > $3 order by seq limit $4")
BY_SEQ_AFTER_ID = Sql(f"{_EVENTS} and (seq is not null or id > $3) order by seq nulls first, id limit $4")
BY_ID = Sql(f"{_EVENTS} order by id limit $3")
BY_ID_AFTER = Sql(f"{_EVENTS} and id > $3 order by id limit $4")
BETWEEN = Sql(f"{_EVENTS} and id > $3 and id < $4 order by id")
MARKS = Sql(
    "select id, type, correlation_id, seq, fenced, credit_key, credit_base, in_band "
    f"from {_S}.workflow_events where run_id = $1 and space = $2 order by seq nulls first, id"
)
LAST_ID = Sql(f"select id from {_S}.workflow_events where run_id = $1 and space = $2 order by id desc limit 1")
#: The latest outside event, and how many events stand up to a time. Slots carry no time.
RECORDED = Sql(f"""
select max(right(id, 26)) filter (where type = any($3::varchar[])), count(*) filter (where right(id, 26) < $4)
from {_S}.workflow_events where run_id = $1 and space = $2 and right(id, 26) not like '0000000000%'
""")

# -- slots

RESERVE = Sql(f"""
insert into {_S}.workflow_event_slots as s (run_id, space, last_slot)
select $1::varchar, $2::varchar, $3::bigint + coalesce((
    select cast(substring(e.id from 6) as bigint) from {_S}.workflow_events e
    where e.run_id = $1 and e.space = $2 and e.id like 'evnt\\_0000000000%' order by e.id desc limit 1
), 0)
on conflict (run_id, space) do update set last_slot = s.last_slot + $3 returning last_slot
""")
STAGE = Sql(f"""
insert into {_S}.staged (run_id, space, id) select $1::varchar, $2::varchar, $3::varchar
where not exists (select from {_S}.workflow_events where run_id = $1 and space = $2 and id = $3)
on conflict do nothing returning true
""")
UNSTAGE = Sql(f"delete from {_S}.staged where run_id = $1 and space = $2 and id = $3")

# -- for those who use the world

FIND_HOOK = LOOK_FOR_TOKEN
FIND_OWNED_HOOK = Sql(f"""
select h.run_id, h.hook_id from {_S}.tokens t join {_S}.workflow_hooks h
    on h.run_id = t.run_id and h.space = t.space and h.hook_id = t.hook_id
where t.token = $1 and t.space = $2
""")
