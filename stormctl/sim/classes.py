"""Which schedules are one: those that differ in the order of independent turns only.

Two turns depend on each other when one actor took both, or both touch one resource and one of them writes it. Schedules
that order all dependent turns alike lead to the same end; they are one class (a Mazurkiewicz trace). Its normal form is
that of Foata: each turn has the level of the longest chain of dependent turns that leads to it, and what is on one
level is sorted. A class is named by 64 bits of a hash of its normal form.
"""

from __future__ import annotations

from hashlib import blake2b

from stormctl.sim.kernel import Label, Run


def dependent(one: Label, other: Label) -> bool:
    """Whether the order of two turns of different actors matters."""
    return (one.writes or other.writes) and one.resource == other.resource and bool(one.resource)


def identities(run: Run) -> list[str]:
    """A name for each actor that does not hang on the order in which independent actors spawned theirs: whose it is,
    its own name, and how many of that name came from there before."""
    found: list[str] = []
    seen: dict[str, int] = {}
    for name, parent in zip(run.names, run.parents, strict=True):
        path = f"{found[parent]}/{name}" if parent >= 0 else name
        count = seen[path] = seen.get(path, 0) + 1
        found.append(path if count == 1 else f"{path}#{count}")
    return found


def foata(run: Run) -> list[str]:
    """The normal form: a line for each turn, of its level, actor, label and picks, sorted by level and actor."""
    names = identities(run)
    picks: dict[int, str] = {}
    for at, _, pick, choice in run.picks:
        picks[at] = picks.get(at, "") + f" {pick.kind}={choice}"
    levels: dict[int, int] = {}
    written: dict[str, int] = {}
    read: dict[str, int] = {}
    lines: list[tuple[int, str, str]] = [(0, "", picks[0])] if 0 in picks else []
    for at, (actor, label, _, _) in enumerate(run.turns, 1):
        op, resource, writes, detail = label
        level = levels.get(actor, 0)
        if resource:
            level = max(level, written.get(resource, 0))
            if writes:
                level = max(level, read.get(resource, 0))
        level += 1
        levels[actor] = level
        if resource:
            if writes:
                written[resource] = level
            elif read.get(resource, 0) < level:
                read[resource] = level
        lines.append((level, names[actor], f"{op} {resource} {writes:d} {detail}{picks.get(at, '')}"))
    lines.sort()
    return [f"{level} {name}: {what}" for level, name, what in lines]


def class_of(run: Run) -> int:
    """The class of a schedule, as a number that is the same in every process. Not for runs that were played lean."""
    return int.from_bytes(blake2b("\n".join(foata(run)).encode(), digest_size=8).digest(), "big")
