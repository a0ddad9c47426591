"""Made-up models for properties: actors with a few operations on a few resources, locks, picks and children."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from stormctl.sim.kernel import Body, Label, Model, Pick, Problem, Run, Stage, TapeChooser, Wait, play


@dataclass
class Memory:
    """What each resource holds: who wrote it, in order; and which locks are taken."""

    written: dict[str, list[str]] = field(default_factory=dict)
    locked: dict[str, bool] = field(default_factory=dict)
    read: list[tuple[str, int]] = field(default_factory=list)

    def judge(self, run: Run) -> Sequence[Problem]:
        return ()

    def result(self) -> str:
        return repr((sorted(self.written.items()), sorted(self.read)))


#: an operation: ("r" | "w" | "await" | "join", resource), ("lock", name, operations), ("pick",), ("child", operations)
Operation = tuple[object, ...]


@dataclass(frozen=True)
class Program:
    """Actors that each do their operations one after the other."""

    actors: tuple[tuple[Operation, ...], ...]
    name: str = "program"
    digest: str = "0123456789abcdef"

    def start(self, stage: Stage) -> Memory:
        memory = Memory()
        for number, operations in enumerate(self.actors):
            stage.spawn(f"A{number}", _act(stage, memory, f"A{number}", operations))
        return memory


def _act(stage: Stage, memory: Memory, me: str, operations: Sequence[Operation]) -> Body:
    for at, operation in enumerate(operations):
        match operation:
            case ("r", str(resource)):
                yield Label("read", resource)
                memory.read.append((f"{me}.{at}", len(memory.written.get(resource, ()))))
            case ("w", str(resource)):
                yield Label("publish", resource, True)
                memory.written.setdefault(resource, []).append(f"{me}.{at}")
            case ("await", str(resource)):
                yield Wait(Label("read", resource), _there(memory, resource), resource)
                memory.read.append((f"{me}.{at}", len(memory.written[resource])))
            case ("join", str(resource)):
                yield Wait(Label("join"), _there(memory, resource), resource)
            case ("lock", str(name), tuple(inner)):
                yield Wait(Label("lock", f"lock:{name}", True), _free(memory, name), f"lock {name}")
                assert not memory.locked.get(name), "two actors hold one lock"
                memory.locked[name] = True
                yield from _act(stage, memory, f"{me}.{at}", inner)
                yield Label("release", f"lock:{name}", True)
                memory.locked[name] = False
            case ("pick",):
                choice = yield Pick("loss", ("kept", "lost"))
                memory.written.setdefault("picks", []).append(f"{me}.{at}={choice}")
                memory.written["picks"].sort()
            case ("child", tuple(inner)):
                yield Label("send", "", True)
                stage.spawn(f"{me}c", _act(stage, memory, f"{me}.{at}", inner))


def _there(memory: Memory, resource: str) -> Callable[[], bool]:
    return lambda: bool(memory.written.get(resource))


def _free(memory: Memory, name: str) -> Callable[[], bool]:
    return lambda: not memory.locked.get(name)


def plain() -> st.SearchStrategy[Operation]:
    """Reads and writes of two resources."""
    return st.tuples(st.sampled_from(["r", "w"]), st.sampled_from(["x", "y"]))


def operations() -> st.SearchStrategy[Operation]:
    """All there are; locks and children hold plain ones."""
    inner = st.lists(plain(), min_size=1, max_size=1).map(tuple)
    return st.one_of(
        plain(),
        plain(),
        st.tuples(st.just("lock"), st.sampled_from(["m", "n"]), inner),
        st.just(("pick",)),
        st.tuples(st.sampled_from(["await", "join"]), st.sampled_from(["x", "y"])),
        st.tuples(st.just("child"), inner),
    )


def programs(most_actors: int = 3, most_operations: int = 2) -> st.SearchStrategy[Program]:
    """Small programs."""
    actor = st.lists(operations(), min_size=1, max_size=most_operations).map(tuple)
    return st.lists(actor, min_size=1, max_size=most_actors).map(lambda actors: Program(tuple(actors)))


def every_run(model: Model, most: int = 100_000) -> Iterator[Run]:
    """Every schedule of a model, by depth first over its tapes: what all else is held against."""
    left: list[list[int]] = [[]]
    count = 0
    while left:
        tape = left.pop()
        run = play(model, TapeChooser(tape))
        yield run
        count += 1
        if count >= most:
            return
        for at in range(len(tape), len(run.tape)):
            left.extend([*run.tape[:at], other] for other in range(1, run.widths[at]))
