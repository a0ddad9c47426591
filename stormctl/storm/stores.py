"""Opening the stores of a storm's cells, the same way for its driver and for its workers wherever they run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from stormctl.engine.generations import generation
from stormctl.runtime.rules import Rules
from stormctl.storm.attempt import Cell
from stormctl.storm.faults.base import Hands
from stormctl.storm.faults.fired import FolderLedger, Ledger, ListLedger
from stormctl.storm.faults.injector import Injector
from stormctl.storm.folder import StormFolder
from stormctl.storm.perturb import Perturb, jitter
from stormctl.storm.plan import Plan, faults_of
from stormctl.storm.virtual import StoreTime
from stormctl.worlds import World, condition_named, open_world
from stormctl.worlds.base import AppendRequest
from stormctl.worlds.condition import Point
from stormctl.worlds.mint import now_ms
from stormctl.worlds.open import Role, world_kind

OnPoint = Callable[[Point, AppendRequest], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Stores:
    """Where the stores of a storm lie.

    ``storm`` is the storm's id, ``folder`` its artefact folder (None on a host that has none), ``dsn`` the database for
    the worlds that lie in one. With ``virtual`` all of them are in memory, under the conditions of their worlds, and
    take that time.
    """

    plan: Plan
    storm: str
    folder: StormFolder | None = None
    dsn: str | None = None
    virtual: StoreTime | None = None

    def rules(self, cell: Cell) -> Rules:
        """The runtime's numbers in this plan's time."""
        condition = condition_named(cell.condition, cell.world)
        rules = Rules(generation=generation(cell.generation), batch_atomic=condition.batch_atomic)
        return rules.scaled(self.plan.time_scale)

    def perturb(self, cell: Cell, worker: str) -> Perturb:
        """What varies between the passes that a worker makes for a cell."""
        return jitter(self.plan.hydration_jitter_ms, f"{self.plan.seed} {cell.label} {worker}")

    def ledger(self, worker: str) -> Ledger:
        """Where a process writes down which faults it let fire."""
        return ListLedger() if self.folder is None else FolderLedger(self.folder.path, worker)

    def injector(
        self, cell: Cell, worker: str, hands: Hands, ledger: Ledger, clock: Callable[[], int] = now_ms
    ) -> Injector:
        """The faults of a cell in one process. On a host without the storm's folder only those that are in force all
        the time: a limit is kept in the folder, and so is the word that a fault fired."""
        faults = faults_of(self.plan, cell)
        return Injector(
            faults if self.folder is not None else [one for one in faults if one[1].when is None],
            seed=f"{self.plan.seed}/{cell.label}/{worker}",
            worker=worker,
            cell=cell.label,
            hands=hands,
            ledger=ledger,
            clock=clock,
        )

    def open(self, cell: Cell, role: Role, worker: str, injector: Injector) -> World:
        """One cell's store. Its queue is the one whose senders meet the faults. Errors are those of ``open_world``."""
        world = open_world(
            self.world(cell),
            self._place(cell),
            condition_named(cell.condition, cell.world),
            role=role,
            worker=worker,
            storage_scale=self.plan.storage_scale,
            seed=self.plan.seed,
            dsn=self.dsn if world_kind(self.world(cell)).needs_server else None,
            space=self.space(cell),
            lease_ms=self.rules(cell).lease_ms,
            shape=injector.shape(),
            on_point=self._on_point(cell, injector),
        )
        world.queue = injector.queue(world.queue)
        return world

    def world(self, cell: Cell) -> str:
        """The name of the world that a cell's store really is."""
        return cell.world if self.virtual is None else "memory"

    def _on_point(self, cell: Cell, injector: Injector) -> OnPoint | None:
        """What is awaited at each point of an append: the time of the store, and the faults."""
        struck = injector.on_point if self.plan.faults else None
        if self.virtual is None:
            return struck
        slow = self.virtual.at_points(f"{self.plan.seed} {cell.label}")
        if struck is None:
            return slow

        async def both(point: Point, request: AppendRequest) -> None:
            await slow(point, request)
            await struck(point, request)

        return both

    def space(self, cell: Cell) -> str:
        """What tells this cell's store from the others of one database."""
        return f"{self.storm}/{cell.label}"

    def _place(self, cell: Cell) -> Path | None:
        return None if self.folder is None else self.folder.store(cell)
