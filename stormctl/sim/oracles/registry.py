"""Every oracle by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from stormctl.sim.kernel import Problem, Run
from stormctl.sim.oracles.cold import cold
from stormctl.sim.oracles.end import end
from stormctl.sim.oracles.ledger import ledger
from stormctl.sim.oracles.log import log
from stormctl.sim.oracles.once import once
from stormctl.sim.oracles.order import order
from stormctl.sim.oracles.prefixes import prefixes
from stormctl.sim.real.machine import Machine

Oracle = Callable[[Machine, Run], Iterator[Problem]]

#: One line per oracle.
ORACLES: Mapping[str, Oracle] = {
    "end": end,
    "log": log,
    "cold": cold,
    "ledger": ledger,
    "prefixes": prefixes,
    "once": once,
    "order": order,
}


def all_of(machine: Machine, run: Run) -> Sequence[Problem]:
    """What all of them say, in their order."""
    return [problem for oracle in ORACLES.values() for problem in oracle(machine, run)]
