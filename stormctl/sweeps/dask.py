"""Sweeping files over the workers of a Dask cluster: the same reports as here, in the same order.

The workers must see the files under the same paths (a shared disk) and run the same stormctl. A database is read by
this process, so that its DSN, which may hold a password, is not sent anywhere.
"""

from __future__ import annotations

import importlib
import re
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from stormctl import __version__
from stormctl.errors import StormctlError, UsageError
from stormctl.readers.open import Place, Unreadable
from stormctl.sweeps.plan import SweepPlan
from stormctl.sweeps.shares import Share
from stormctl.sweeps.spread import AHEAD, Item

#: An address as Dask prints them: ``tcp://host:8786``, ``host:8786``, ``inproc://10.0.0.1/7/1``.
_ADDRESS = re.compile(r"[!-~]*:[!-~]*")
#: How long a scheduler may take to answer, and a first worker to be there.
CONNECT_S, WORKERS_S = 10, 30
#: A worker has several threads, and an engine of ours is for one at a time.
_ONE_AT_A_TIME = threading.Lock()


class Dask:
    """The workers of the scheduler at an address (``tcp://host:8786``). UsageError where the extra is not installed."""

    def __init__(self, address: str) -> None:
        self._address = address
        try:
            self._distributed = importlib.import_module("distributed")
        except ImportError:
            raise UsageError(
                "--dask needs the extra dask", remedy="Install stormctl[dask], or leave --dask out."
            ) from None

    def sweep(self, files: Sequence[Place | Share], plan: SweepPlan) -> Generator[Iterator[Item], None, None]:
        """See :class:`stormctl.sweeps.spread.Spread`. UsageError where no scheduler answers, or a worker has another
        stormctl; a StormctlError when the cluster fails."""
        from stormctl.sweeps.files import sweep_file

        if not files:
            return
        earlier = plan.earlier if plan.earlier is None or "://" in plan.earlier else str(Path(plan.earlier).absolute())
        there = replace(plan, earlier=earlier, memory=None, jobs=1)
        with self._client() as client:
            room = max(1, sum(client.nthreads().values())) * AHEAD
            ahead: deque[Any] = deque()
            left = iter(files)
            try:
                while True:
                    while len(ahead) < room and (file := next(left, None)) is not None:
                        ahead.append(self._submit(client, file, there) if isinstance(file, Path) else file)
                    if not ahead:
                        return
                    first = ahead.popleft()
                    yield iter(self._result(first)) if hasattr(first, "result") else sweep_file(first, plan)
            finally:
                client.cancel([one for one in ahead if hasattr(one, "result")])

    def connected(self) -> Any:
        """A client of the scheduler, whose workers have this stormctl. UsageError where there is none."""
        return self._client()

    def _submit(self, client: Any, file: Path, plan: SweepPlan) -> Any:
        return client.submit(sweep_there, str(file), str(file.absolute()), plan, pure=False)

    def _result(self, future: Any) -> list[Item]:
        try:
            found: list[Item] = future.result()
        except StormctlError:
            raise
        except Exception as error:  # a worker that died, a lost connection, an answer that does not come back whole
            raise StormctlError(
                f"the Dask cluster at {self._shown} failed: {type(error).__name__}",
                remedy="Look into its logs, or sweep without --dask.",
            ) from None
        return found

    def _client(self) -> Any:
        try:
            if not _ADDRESS.fullmatch(self._address):
                raise ValueError  # not asked about at all: a name that is none can take minutes to be looked up
            client = self._distributed.Client(self._address, timeout=CONNECT_S, set_as_default=False)
        except Exception:  # addresses that are none, refused connections and timeouts each have errors of their own
            raise UsageError(
                f"no Dask scheduler answers at {self._shown}", remedy="Give its address, such as tcp://host:8786."
            ) from None
        try:
            client.wait_for_workers(1, timeout=WORKERS_S)
            versions = set(client.run(version_there).values())
        except Exception as error:
            client.close()
            raise UsageError(
                f"the Dask cluster at {self._shown} has no worker that can be used: {type(error).__name__}",
                remedy=f"Start workers that have stormctl {__version__} installed.",
            ) from None
        if versions != {__version__}:
            client.close()
            raise UsageError(
                f"workers of the Dask cluster at {self._shown} run stormctl {', '.join(sorted(versions))}",
                remedy=f"Install {__version__} on them, which is what runs here.",
            )
        return client

    @property
    def _shown(self) -> str:
        return ascii(self._address)[1:-1][:80]


def version_there() -> str:
    """On a worker: the stormctl that it has."""
    return __version__


def sweep_there(shown: str, path: str, plan: SweepPlan) -> list[Item]:
    """On a worker: what a file gives, named as the person who sweeps has named it."""
    from stormctl.sweeps.files import sweep_file

    with _ONE_AT_A_TIME:
        found = list(sweep_file(Path(path), plan))
    return found if shown == path else [_named(item, shown, path) for item in found]


def _named(item: Item, shown: str, path: str) -> Item:
    """The report with the file named as it was named where the sweep was asked for."""
    if item.source.startswith(path):
        item = replace(item, source=shown + item.source.removeprefix(path))
    return replace(item, error=item.error.replace(path, shown)) if isinstance(item, Unreadable) else item
