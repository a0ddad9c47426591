"""What is wrong with a simulated run: one file for each question, and a registry of all."""

from stormctl.sim.oracles.registry import ORACLES, all_of

__all__ = ["ORACLES", "all_of"]
