-- The event log and its entity rows. Tables and columns are named and typed as in world-postgres 4.3.7 and
-- 5.0.0-beta.29, so that one reader serves both; what is ours comes last in each table.
--
-- Every key holds the space: several stores may lie in one database, and their runs are apart.
-- Ids are compared byte by byte (collation "C"), whatever the database's own collation is.

create type stormctl.status as enum ('pending', 'running', 'completed', 'failed', 'cancelled');
create type stormctl.step_status as enum ('pending', 'running', 'completed', 'failed', 'cancelled');
create type stormctl.wait_status as enum ('waiting', 'completed');

-- Which stores there are, under which condition each was made, and who drives it.
create table stormctl.spaces (
    space varchar collate "C" primary key,
    condition varchar not null,
    created_at timestamptz not null default now(),
    driver jsonb,
    heartbeat_at timestamptz
);

create table stormctl.workflow_runs (
    id varchar collate "C" not null,
    output jsonb,
    deployment_id varchar not null,
    status stormctl.status not null,
    name varchar,
    execution_context jsonb,
    input jsonb,
    error text,
    created_at timestamp not null default now(),
    updated_at timestamp not null default now(),
    completed_at timestamp,
    started_at timestamp,
    output_cbor bytea,
    execution_context_cbor bytea,
    input_cbor bytea,
    expired_at timestamp,
    spec_version varchar,
    error_cbor bytea,
    error_code varchar,
    attributes jsonb not null default '{}',
    encryption_public_key varchar,
    -- the end of the run's log, as vercel/workflow #3269 keeps it (0 and null: derive it from the events)
    next_event_seq bigint not null default 0,
    last_event_id varchar collate "C",
    writer_snapshot varchar,
    writer_base_count bigint,
    last_fenced_seq bigint not null default 0,
    in_band bigint not null default 0,
    space varchar collate "C" not null default '',
    primary key (id, space)
) with (fillfactor = 60);

create table stormctl.workflow_events (
    id varchar collate "C" not null,
    type varchar not null,
    correlation_id varchar collate "C",
    created_at timestamp not null default now(),
    run_id varchar collate "C" not null,
    payload jsonb,
    payload_cbor bytea,
    spec_version int,
    seq bigint,
    -- how many events the writer had read, and who it was
    fence_count bigint,
    writer_id varchar,
    -- what the fence said, so that the end of the log can be derived from the events; null where nobody recorded it
    fenced boolean,
    credit_key varchar,
    credit_base bigint,
    in_band boolean,
    -- whether a second create of the entity is a conflict (see the index below)
    sole boolean not null default true,
    space varchar collate "C" not null default '',
    constraint workflow_events_run_id_id_pk primary key (run_id, space, id)
);

-- No lock of ours can be broken in a database, so that no condition can give one seq twice.
create unique index workflow_events_run_id_seq_unique on stormctl.workflow_events (run_id, space, seq);

create unique index workflow_events_entity_creation_unique on stormctl.workflow_events (run_id, space, correlation_id, type)
    where sole and type in ('step_created', 'hook_created', 'wait_created', 'attr_set');

create table stormctl.workflow_steps (
    run_id varchar collate "C" not null,
    step_id varchar collate "C" not null,
    step_name varchar,
    status stormctl.step_status not null,
    input jsonb,
    output jsonb,
    error text,
    attempt int not null,
    started_at timestamp,
    completed_at timestamp,
    created_at timestamp not null default now(),
    updated_at timestamp not null default now(),
    retry_after timestamp,
    input_cbor bytea,
    output_cbor bytea,
    error_cbor bytea,
    spec_version int,
    space varchar collate "C" not null default '',
    primary key (run_id, space, step_id)
);

create table stormctl.workflow_hooks (
    run_id varchar collate "C" not null,
    hook_id varchar collate "C" not null,
    token varchar collate "C",
    owner_id varchar not null,
    project_id varchar not null,
    environment varchar not null,
    created_at timestamp not null default now(),
    metadata jsonb,
    metadata_cbor bytea,
    spec_version int,
    is_webhook boolean default true,
    is_system boolean default false,
    space varchar collate "C" not null default '',
    primary key (run_id, space, hook_id)
);
-- Plain, as upstream: several hooks can hold one token where a condition lets them.
create index workflow_hooks_token on stormctl.workflow_hooks (token, space);

create table stormctl.workflow_waits (
    wait_id varchar collate "C" not null,
    run_id varchar collate "C" not null,
    status stormctl.wait_status not null,
    resume_at timestamp,
    completed_at timestamp,
    created_at timestamp not null default now(),
    updated_at timestamp not null default now(),
    spec_version int,
    space varchar collate "C" not null default '',
    primary key (run_id, space, wait_id)
);

-- What can happen once. A claim outlives its entity and its run.
create table stormctl.claims (
    run_id varchar collate "C" not null,
    space varchar collate "C" not null,
    id varchar collate "C" not null,
    kind varchar not null,
    what varchar not null,
    primary key (run_id, space, id, kind, what)
);

-- Who holds a token, where a token can have one owner only.
create table stormctl.tokens (
    token varchar collate "C" not null,
    space varchar collate "C" not null,
    run_id varchar collate "C" not null,
    hook_id varchar collate "C" not null,
    event_id varchar,
    primary key (token, space)
);
create index tokens_run_id on stormctl.tokens (run_id, space);

-- The counter of slots that are given away before their event exists.
create table stormctl.workflow_event_slots (
    run_id varchar collate "C" not null,
    space varchar collate "C" not null,
    last_slot bigint not null,
    primary key (run_id, space)
) with (fillfactor = 60);

-- Events staged under the name that their slot gives them.
create table stormctl.staged (
    run_id varchar collate "C" not null,
    space varchar collate "C" not null,
    id varchar collate "C" not null,
    primary key (run_id, space, id)
);
