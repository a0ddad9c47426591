"""Real storms for tests: ``stormctl run`` as a process of its own, watched from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

import stormctl
from tests.storm.processes import children_of, command_of, until

#: One round, and few pokes: unbounded they come as long as the run lasts, and a slow machine slows itself down by them.
INPUT: dict[str, Any] = {"rounds": 1, "width": 3, "jitter_buckets": 7, "poke_max": 12}
PLAN: dict[str, Any] = {
    "schema": "stormctl.plan/1",
    "name": "small",
    "seed": 11,
    "scenario": "step-storm",
    "world": "local",
    "condition": "seq-final",
    "generation": "dispenser",
    "attempts": 2,
    "concurrency": 2,
    "processes": 2,
    "time_scale": 0.02,
    "storage_scale": 0.02,
    "cap": "3000s",
    "input": INPUT,
}
#: More attempts than any test waits for.
LONG = {"attempts": 400}
#: The console script as it is, but that it draws no pictures: they take longer than everything else in a small storm.
PLAIN = (
    "import sys; from stormctl.report import pictures; pictures.write_plots = lambda artefact: (); "
    "from stormctl.cli import main; sys.exit(main(sys.argv[1:]))"
)


def environment() -> dict[str, str]:
    """Where the package under test is found, also from another folder."""
    place = Path(stormctl.__file__).resolve().parents[1]
    installed = "site-packages" in place.parts
    return {**os.environ, **({} if installed else {"PYTHONPATH": str(place)})}


def command(*arguments: object, pictures: bool = True) -> list[str]:
    """The console script, wherever it is installed: ``-P`` keeps the current folder out of the path, as it does."""
    return [sys.executable, "-P", *(["-m", "stormctl"] if pictures else ["-c", PLAIN]), *map(str, arguments)]


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


@dataclass
class Storm:
    """A storm that was started. Its process leads a group of its own, as a shell's job does."""

    process: subprocess.Popen[str]
    out: Path
    seen_workers: list[int] = field(default_factory=list)

    @classmethod
    def start(
        cls, place: Path, *arguments: object, name: str = "small", pictures: bool = False, **changes: Any
    ) -> Storm:
        """Start a storm whose folder is made under ``place/out``, in a current folder with a module of ill name."""
        place.mkdir(parents=True, exist_ok=True)
        (place / "queue.py").write_text("raise ImportError('this is the user\\'s own queue.py')\n")
        plan = place / f"{name}.yaml"
        plan.write_text(yaml.safe_dump({**PLAN, "name": name, **changes}))
        out = place / "out"
        # A test run in the background may have been told to ignore Ctrl-C, and would pass that on.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            process = subprocess.Popen(
                command("run", plan, "--out", out, *arguments, pictures=pictures),
                cwd=place,
                env=environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                stdin=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
        finally:
            signal.signal(signal.SIGINT, before)
        return cls(process, out / name)

    @property
    def folder(self) -> Path:
        """The artefact folder, as soon as there is one."""
        until(lambda: (self.out / "latest" / "attempts.ndjson").exists() or self.process.poll() is not None)
        return (self.out / "latest").resolve()

    def attempts(self) -> list[dict[str, Any]]:
        """The rows of landed attempts that are whole."""
        rows = []
        for line in (self.folder / "attempts.ndjson").read_text().splitlines():
            try:
                rows.append(json.loads(line))
            except ValueError:
                continue
        return rows

    def workers(self, count: int = 2) -> list[int]:
        """The worker processes, as soon as there are so many."""

        def look() -> list[int]:
            found = [pid for pid in children_of(self.process.pid) if "worker" in command_of(pid)]
            return found if len(found) >= count else []

        self.seen_workers = until(look)
        return self.seen_workers

    def wait_for(self, landed: int) -> None:
        """Wait until so many attempts have landed."""
        until(lambda: len(self.attempts()) >= landed or self.process.poll() is not None, 60)
        assert self.process.poll() is None, self.process.communicate()

    def end(self, seconds: float = 60) -> Ended:
        """Wait for its end."""
        out, err = self.process.communicate(timeout=seconds)
        return Ended(self.process.returncode, out, err)

    def kill(self) -> None:
        """Leave nothing of it behind, whatever the test did."""
        for pid in [self.process.pid, *self.seen_workers]:
            try:
                if pid == self.process.pid or "worker" in command_of(pid):
                    os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.communicate()


def sweep(folder: Path) -> tuple[int, dict[str, Any]]:
    """``stormctl sweep`` of a storm's folder: its exit code and report."""
    ran = subprocess.run(
        command("sweep", folder, "--format", "json"), capture_output=True, text=True, env=environment(), check=False
    )
    assert ran.stderr == ""
    return ran.returncode, json.loads(ran.stdout)
