"""From findings and replays to a cause: who wrote what, which class it is, and which write is to blame."""

from stormctl.explain.batches import Batch, batches_of
from stormctl.explain.explain import explain
from stormctl.explain.explanation import SCHEMA, Answer, Explanation, explain_report
from stormctl.explain.plan import ExplainPlan
from stormctl.explain.taxonomy import CorruptionClass, Group, Match, Weight, classes
from stormctl.explain.writers import Origin, Reconstruction, Standing, reconstruct, reconstruct_by_generation

__all__ = [
    "SCHEMA",
    "Answer",
    "Batch",
    "CorruptionClass",
    "ExplainPlan",
    "Explanation",
    "Group",
    "Match",
    "Origin",
    "Reconstruction",
    "Standing",
    "Weight",
    "batches_of",
    "classes",
    "explain",
    "explain_report",
    "reconstruct",
    "reconstruct_by_generation",
]
