-- What every append attempt left behind, beside the log. Times are nanoseconds of one machine's monotonic clock: they
-- compare only within one machine.

create table stormctl.audit (
    number bigint generated always as identity primary key,
    space varchar collate "C" not null,
    machine varchar not null,
    run_id varchar collate "C" not null,
    writer varchar not null,
    type varchar not null,
    correlation_id varchar,
    admitted boolean not null,
    reason varchar not null,
    position bigint,
    event_id varchar,
    snapshot bigint,
    entered bigint not null,
    minted bigint not null,
    published bigint not null,
    returned bigint not null
);
create index audit_run_id on stormctl.audit (run_id, space);

-- The storms that use this database, so that workers on other machines find them.
create table stormctl.storms (
    id varchar collate "C" primary key,
    name varchar not null,
    plan text not null,
    created_at timestamptz not null default now(),
    heartbeat_at timestamptz not null default now(),
    host varchar not null,
    pid int not null,
    ended_at timestamptz
);

-- What workers did for a storm: one row for each delivery.
create table stormctl.work (
    number bigint generated always as identity primary key,
    storm varchar collate "C" not null references stormctl.storms (id),
    run_id varchar collate "C" not null,
    row jsonb not null,
    written_at timestamptz not null default now()
);
create index work_run_id on stormctl.work (storm, run_id, number);
