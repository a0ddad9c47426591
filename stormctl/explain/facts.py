"""Everything that the classes are decided from, gathered once per log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stormctl.explain.batches import Batch
from stormctl.explain.conflicts import Clash, Conflict
from stormctl.explain.creates import Created
from stormctl.explain.hidden import Search, Shaken, View
from stormctl.explain.known import KnownWriter
from stormctl.explain.sessions import Kept
from stormctl.explain.writers import Origin, Reconstruction
from stormctl.history import Capture, EventLog, kinds
from stormctl.sweeps.finding import Finding, Severity
from stormctl.sweeps.rebinding import Flip
from stormctl.sweeps.report import LogReport

#: generations that were proposed and never released as they are: they close nothing
NEVER_RELEASED = frozenset({"unarmed", "dispenser-v1"})


@dataclass(frozen=True, slots=True)
class Guilty:
    """The write that is to blame, and the view that it was derived from (None where no view explains it)."""

    create: Created
    view: View | None
    batch: Batch | None = None
    known: KnownWriter | None = None
    #: how the view was found: ``prefix``, ``hidden event``, ``audit``, ``perturbed pass`` or ``none``
    found_by: str = "none"


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one log.

    ``report`` is that of the sweeps that need no replay. ``found`` are the reconstructions by generation, ``writer``
    the name of the one that is taken to have written the log. ``would`` tells of each generation whether, given the
    guilty view, it asks for the guilty create; ``flips_under`` whether the decisive flip happens under it. Both are
    None where the generation cannot follow the log so far.
    """

    capture: Capture
    report: LogReport
    order: tuple[str, ...] = ()
    newest: str = ""
    found: Mapping[str, Reconstruction] = field(default_factory=dict)
    writer: str | None = None
    declared: str | None = None
    batches: tuple[Batch, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    guilty: Guilty | None = None
    flip: Flip | None = None
    would: Mapping[str, bool | None] = field(default_factory=dict)
    flips_under: Mapping[str, bool | None] = field(default_factory=dict)
    searches: tuple[Search, ...] = ()
    shaken: Shaken | None = None
    known: Mapping[int, KnownWriter] = field(default_factory=dict)
    #: of the generations whose sessions were tried: what one that was kept drew otherwise
    kept: Mapping[str, Kept | None] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether the run failed, by its row or its log."""
        run = self.capture.run
        end = next((event for event in self.log if event.is_terminal), None)
        return (run is not None and run.status == "failed") or (end is not None and end.type == kinds.RUN_FAILED)

    @property
    def log(self) -> EventLog:
        """The log."""
        return self.capture.log

    @property
    def best(self) -> Reconstruction | None:
        """The reconstruction under the generation that wrote the log."""
        return None if self.writer is None else self.found.get(self.writer)

    def findings(self, sweep: str, *words: str, harmless_too: bool = False) -> tuple[Finding, ...]:
        """The findings of a sweep of these kinds (of any, when none is named) that the profile calls fatal."""
        return tuple(
            finding
            for finding in self.report.findings
            if finding.sweep == sweep
            and (harmless_too or finding.severity is Severity.FATAL)
            and (not words or kind_of(finding) in words)
        )

    def indices(self, findings: tuple[Finding, ...]) -> tuple[int, ...]:
        """The 0-based indices of the events that findings are about."""
        places = {place for finding in findings for place in finding.positions}
        return tuple(index for index in range(len(self.log)) if self.log.place(index) in places)

    def conflict(self, *clashes: Clash) -> Conflict | None:
        """The first conflict of these sorts that the guilty write is part of, else the first at all."""
        fitting = [one for one in self.conflicts if not clashes or one.clash in clashes]
        if self.guilty is not None:
            for one in fitting:
                if self.guilty.create in one.creates:
                    return one
        return fitting[0] if fitting else None

    @property
    def unexplained(self) -> tuple[Origin, ...]:
        """What no prefix explains under the generation that wrote the log."""
        return () if self.best is None else self.best.unexplained

    @property
    def hidden(self) -> int | None:
        """The event that was hidden from the guilty write's writer, by index."""
        view = None if self.guilty is None else self.guilty.view
        return view.hidden[0] if view is not None and view.hidden else None

    @property
    def late_findings(self) -> tuple[Finding, ...]:
        """The findings of sweeps that look for late publication, whatever the profile makes of it."""
        return (
            *self.findings("commit-order", "late-publish", "late-position", harmless_too=True),
            *self.findings("id-order", "id-behind", harmless_too=True),
            *self.findings("cursor-skip", "missed-event", harmless_too=True),
        )

    def was_late(self, index: int) -> bool:
        """Whether a sweep names the event as one that came late, or the audit as one that its readers lacked."""
        if self.guilty is not None and self.guilty.found_by == "audit":
            return True
        return any(index in self.indices((finding,)) for finding in self.late_findings)

    @property
    def closing(self) -> str | None:
        """The first released generation, from the one that wrote the log on, under which the fault no "
        "longer happens."""
        if self.writer is None or self.writer not in self.order:
            return None
        # the flip is the mechanism; of its two sides a right engine may well ask for one
        verdicts = self.flips_under if self.flip is not None else self.would
        if verdicts.get(self.writer) is not True:
            return None
        later = self.order[self.order.index(self.writer) + 1 :]
        return next((name for name in later if name not in NEVER_RELEASED and verdicts.get(name) is False), None)


def kind_of(finding: Finding) -> str:
    """The sweep's own word for the class of a finding."""
    parts = finding.key.split("/")
    return parts[1] if len(parts) > 1 else ""
