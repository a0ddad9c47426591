"""Schedules at the command line: by token or script, shrunk, searched for from a log; as lines, JSON or a page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stormctl.cli.exit_code import combine
from stormctl.cli.options import PictureFormat
from stormctl.cli.output import emit, width
from stormctl.errors import EXIT_CLEAN, EXIT_UNKNOWN, EXIT_VIOLATIONS, StormctlError, UnreadableInput, UsageError

if TYPE_CHECKING:
    from stormctl.history import Capture
    from stormctl.sim.kernel import Model, Run
    from stormctl.sim.show import Picture

#: a script is typed or printed, and short
_MOST_SCRIPT = 1_000_000


@dataclass(frozen=True, slots=True)
class Shown:
    """How a schedule is shown, and where it is written to (None: standard output)."""

    format: PictureFormat = PictureFormat.TABLE
    out: Path | None = None


def model_named(name: str, log: Path | None = None, digest: str = "") -> Model:
    """The model of a name as tokens have it: ``fork-hook-wins@mint-ulid/nets``, the small model of a fork
    (``fork-mint``), or the workflow of a log (``log:hook-sleep@append-only``, with the log).

    A scenario as its script is played, with what that allows reads and queue to do, has another digest than one that is
    searched: ``digest`` tells them apart.
    """
    from stormctl.cli.sim_output import entry_of
    from stormctl.sim.models.fork import SMALL, Fork
    from stormctl.sim.produce import PREFIX, model_of

    if name in SMALL:
        return Fork(SMALL[name])
    scenario, _, rest = name.partition("@")
    world, _, generation = rest.partition("/")
    if not scenario.startswith(PREFIX):
        entry = entry_of(scenario)
        searched = entry.search(world, generation or None)
        scripted = entry.system(world, generation_name=generation or None)
        return scripted if digest and scripted.digest.startswith(digest) else searched
    if log is None:
        raise UsageError("the schedule is of a log", remedy="Name the log with --log.")
    return model_of(capture_at(log), world, generation=generation or None)


def capture_at(path: Path) -> Capture:
    """The one log at a path. UsageError where there are several or none."""
    from itertools import islice

    from stormctl.readers import Unreadable, open_captures

    found = list(islice(open_captures([path]), 2))
    if len(found) != 1:
        raise UsageError(f"{path} holds {'no log' if not found else 'more logs than one'}", remedy="Name one log.")
    if isinstance(found[0], Unreadable):
        raise UnreadableInput(found[0].error, remedy=found[0].remedy)
    return found[0]


def script_at(path: Path) -> str:
    """A script from its file."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_MOST_SCRIPT + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"the script {path} cannot be read: {reason}", remedy="Name a text file.") from None
    if len(text) > _MOST_SCRIPT:
        raise UsageError(f"the script {path} is too long", remedy="Keep it under a million characters.")
    return text


def run_of_token(text: str, log: Path | None = None) -> tuple[Model, Run]:
    """The run of a token. UsageError for one of a model that has changed since."""
    from stormctl.sim.kernel import TapeChooser, play
    from stormctl.sim.token import Token

    token = Token.parse(text)
    model = model_named(token.model, log, token.digest)
    if not model.digest.startswith(token.digest):
        raise UsageError(
            f"the token is for {token.model} as it was before it changed",
            remedy="Play its script (`stormctl sim replay --script FILE --scenario S --world W`), or search again.",
        )
    return model, play(model, TapeChooser(token.tape))


def run_of_script(path: Path, scenario: str | None, world: str | None, generation: str | None) -> tuple[Model, Run]:
    """The run of a script. UsageError for one that does not go with the scenario."""
    from stormctl.sim.kernel import play
    from stormctl.sim.models.fork import SMALL
    from stormctl.sim.strategies.scripted import FinishedScript
    from stormctl.sim.tape import ScriptMismatch, parse

    if scenario is None:
        raise UsageError("a script is of a scenario", remedy="Name it with --scenario, and a world with --world.")
    name = scenario if world is None else f"{scenario}@{world}" + (f"/{generation}" if generation else "")
    if world is None and scenario not in SMALL:
        raise UsageError("a script is played in a world", remedy="Name it with --world.")
    model = model_named(name)
    chooser = FinishedScript(parse(script_at(path)))
    try:
        run = play(model, chooser)
        chooser.report(run)
    except ScriptMismatch as problem:
        raise UsageError(str(problem), remedy=problem.remedy) from None
    return model, run


def replay(model: Model, run: Run, how: Shown, *, extra: Sequence[str] = (), report_only: bool) -> int:
    """Show a schedule that was played; the exit code."""
    from stormctl.sim.show import picture

    put([picture(model, run, extra=extra)], how)
    code = EXIT_VIOLATIONS if run.problems else EXIT_UNKNOWN if run.cut else EXIT_CLEAN
    return combine([code], report_only=report_only)


def shrink(text: str, how: Shown, *, proof: int, report_only: bool) -> int:
    """Make the schedule of a token small, prove it and show it; the exit code."""
    from stormctl.sim.kernel import TapeChooser, play
    from stormctl.sim.show import picture
    from stormctl.sim.shrink import shrink

    model, run = run_of_token(text)
    if not run.problems:
        put([picture(model, run, proof="nothing is wrong with it, so there is nothing to shrink")], how)
        return combine([EXIT_CLEAN], report_only=report_only)
    small = shrink(model, run.tape, most_checked=proof)
    shown = play(small.model, TapeChooser(small.tape))
    put([picture(small.model, shown, proof=str(small.certificate), signature=small.signature)], how)
    return combine([EXIT_VIOLATIONS], report_only=report_only)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a log is searched for with: see the options of ``stormctl sim produce``."""

    worlds: tuple[str, ...]
    preemptions: int
    most: int
    seconds: float | None
    seed: int
    workload: str | None
    generation: str | None


def produce(path: Path, wanted: Wanted, how: Shown, *, report_only: bool) -> int:
    """Search for schedules that write a log, in each world; the exit code."""
    from stormctl.sim.book import WORLDS
    from stormctl.sim.kernel import TapeChooser, play
    from stormctl.sim.produce import produce
    from stormctl.sim.show import picture

    capture = capture_at(path)
    workload = None if wanted.workload is None else _workload(wanted.workload)
    pictures, codes, told = [], [], []
    for world in wanted.worlds or WORLDS:
        found = produce(
            capture,
            world,
            workload=workload,
            generation=wanted.generation,
            preemptions=wanted.preemptions,
            most=wanted.most,
            seconds=wanted.seconds,
            seed=wanted.seed,
        )
        codes.append(EXIT_CLEAN if found.found else EXIT_VIOLATIONS if found.exhausted else EXIT_UNKNOWN)
        told.append({"world": world, "found": found.found, "checked": found.checked, "proved": found.proved,
                     "reached": found.reached, "events": found.events, "sentence": found.sentence})  # fmt: skip
        if how.format is PictureFormat.TABLE:
            emit(found.sentence)
        if found.tape is not None:
            shown = picture(found.model, play(found.model, TapeChooser(found.tape)), extra=("--log", str(path)))
            pictures.append(shown)
            if how.format is PictureFormat.TABLE:
                put([shown], how)
    if how.format is PictureFormat.JSON:
        from stormctl.sim.show.page import schedule_data

        data = {"schema": "stormctl.produced/1", "log": str(path), "worlds": told}
        write(json.dumps(data | {"schedules": [schedule_data(one) for one in pictures]}, indent=2), how)
    elif how.format is PictureFormat.HTML:
        put(pictures, how, " ".join(str(one["sentence"]) + "." for one in told))
    # one world that can write it answers the question, whatever the others can
    return combine([EXIT_CLEAN] if EXIT_CLEAN in codes else codes, report_only=report_only)


def _workload(name: str) -> Any:
    from stormctl.workloads.registry import workload
    from stormctl.workloads.user import load_workload, names_a_file

    return load_workload(name) if names_a_file(name) else workload(name)


def put(pictures: Sequence[Picture], how: Shown, words: str = "") -> None:
    """Show pictures as asked for."""
    from stormctl.sim.show import lines_of
    from stormctl.sim.show.page import schedule_data, schedule_page

    if how.format is PictureFormat.TABLE:
        write("\n".join(line for one in pictures for line in ["", *lines_of(one, width=width())]), how)
    elif how.format is PictureFormat.JSON:
        data = [schedule_data(one) for one in pictures]
        write(json.dumps(data[0] if len(data) == 1 else data, indent=2, ensure_ascii=False), how)
    else:
        write(schedule_page(pictures, words), how)


def write(text: str, how: Shown) -> None:
    """To the file that was named, else to standard output."""
    if how.out is None:
        emit(text)
        return
    try:
        how.out.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
    except OSError as error:
        raise StormctlError(f"{how.out} cannot be written: {error.strerror}", remedy="Name another file.") from None
    emit(f"written  {how.out}")
