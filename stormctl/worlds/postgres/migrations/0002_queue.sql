-- The queue. A message waits until due_at; claiming one moves due_at to the end of its lease, so that a message whose
-- worker died is simply due again.

create table stormctl.messages (
    id bigint generated always as identity primary key,
    space varchar collate "C" not null,
    due_at timestamptz not null,
    attempt int not null default 1,
    worker varchar,
    body bytea not null
) with (fillfactor = 60);
create index messages_due on stormctl.messages (space, due_at, id);
create index messages_worker on stormctl.messages (space, worker) where worker is not null;

-- Idempotency keys, by their SHA-256, for ever.
create table stormctl.message_keys (
    space varchar collate "C" not null,
    key bytea not null,
    primary key (space, key)
);
