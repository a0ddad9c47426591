"""The tables of a Postgres world of the Workflow SDK 4.x, as its migrations leave them, and rows to put into them."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

TABLES = """
create schema workflow;
create type workflow.status as enum ('pending', 'running', 'completed', 'failed', 'cancelled', 'paused');
create type workflow.step_status as enum ('pending', 'running', 'completed', 'failed', 'cancelled');
create type workflow.wait_status as enum ('waiting', 'completed');
create table workflow.workflow_events (
  id varchar primary key, type varchar not null, correlation_id varchar, created_at timestamp not null default now(),
  run_id varchar not null, payload jsonb, payload_cbor bytea, spec_version int);
create table workflow.workflow_runs (
  id varchar primary key, output jsonb, deployment_id varchar not null, status workflow.status not null,
  name varchar not null, execution_context jsonb, input jsonb, error text, created_at timestamp not null default now(),
  updated_at timestamp not null default now(), completed_at timestamp, started_at timestamp, output_cbor bytea,
  execution_context_cbor bytea, input_cbor bytea, expired_at timestamp, spec_version varchar, error_cbor bytea);
create table workflow.workflow_steps (
  run_id varchar not null, step_id varchar primary key, step_name varchar not null,
  status workflow.step_status not null, input jsonb, output jsonb, error text, attempt int not null,
  started_at timestamp, completed_at timestamp, created_at timestamp not null default now(),
  updated_at timestamp not null default now(), retry_after timestamp, input_cbor bytea, output_cbor bytea,
  error_cbor bytea, spec_version int);
create table workflow.workflow_waits (
  wait_id varchar primary key, run_id varchar not null, status workflow.wait_status not null, resume_at timestamp,
  completed_at timestamp, created_at timestamp not null default now(), updated_at timestamp not null default now(),
  spec_version int);
"""


def fill(connection: Any, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert rows, each in a transaction of its own, as the world's servers do. An empty text of a CSV is null."""
    for row in rows:
        given = {name: value for name, value in row.items() if value not in (None, "")}
        marks = ", ".join(["%s"] * len(given))
        connection.execute(f"insert into workflow.{table} ({', '.join(given)}) values ({marks})", list(given.values()))


def csv_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a gzipped CSV dump."""
    csv.field_size_limit(1 << 24)
    with gzip.open(path, "rt", newline="") as file:
        yield from csv.DictReader(file)
