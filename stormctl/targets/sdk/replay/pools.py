"""The workers of this process: kept from one replay to the next, so that a folder of logs loads each bundle once.

They end with the process (a worker whose standard input closes ends by itself), or by :func:`close`.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Generator, Iterable, Mapping

from stormctl.targets.sdk.replay.answer import Answer
from stormctl.targets.sdk.replay.bundle import Bundle
from stormctl.targets.sdk.replay.pool import Pool
from stormctl.targets.sdk.replay.record import RunRecord

#: bundles whose workers are kept at once
MOST_BUNDLES = 4
_Key = tuple[int, str, int, tuple[tuple[str, str], ...]]
_pools: dict[_Key, Pool] = {}
_NOTHING: Mapping[str, str] = {}


def passes(
    bundle: Bundle,
    record: RunRecord,
    prefixes: Iterable[int],
    *,
    hidden: frozenset[int] = frozenset(),
    jobs: int = 1,
    environment: Mapping[str, str] = _NOTHING,
) -> Generator[Answer]:
    """The answers of the kept workers of a bundle, started first if need be; see ``Pool.passes``. Workers that run with
    other switches are others."""
    pool = _pool(bundle, jobs, environment)
    yield from pool.passes(record, prefixes, hidden=hidden)


def close() -> None:
    """End every worker of this process."""
    for key in [key for key in _pools if key[0] == os.getpid()]:
        _pools.pop(key).close()


def _pool(bundle: Bundle, jobs: int, environment: Mapping[str, str]) -> Pool:
    key = (os.getpid(), bundle.digest, jobs, tuple(sorted(environment.items())))  # a forked child has its own
    if key not in _pools:
        own = [one for one in _pools if one[0] == key[0]]
        for old in own[: max(0, len(own) - MOST_BUNDLES + 1)]:
            _pools.pop(old).close()
        _pools[key] = Pool(bundle, jobs=jobs, environment=environment)
    return _pools[key]


atexit.register(close)
