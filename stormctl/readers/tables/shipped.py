"""The maps that stormctl brings along, and maps from files."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from stormctl.errors import suggest
from stormctl.readers.tables.maps import MapError, TableMap

FOLDER = Path(__file__).resolve().parent.parent / "maps"
SUFFIXES = (".yaml", ".yml")
MAX_MAP_BYTES = 1 << 18
#: A map nests three deep; the time that a YAML parser takes grows with the square of the depth.
MAX_DEPTH = 32


def shipped_maps() -> tuple[str, ...]:
    """The names of the maps that stormctl brings along."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


def find_map(name: str) -> TableMap:
    """A map that stormctl brings along, by name, or the map in a file. MapError for anything else."""
    return _read(Path(name)) if _names_a_file(name) else shipped_map(name)


def absolute(name: str) -> str:
    """The name of a map as it holds in any folder: a file's path is made absolute."""
    return str(Path(name).absolute()) if _names_a_file(name) else name


def _names_a_file(name: str) -> bool:
    return Path(name).suffix in SUFFIXES or Path(name).parent != Path()


@lru_cache(maxsize=32)
def shipped_map(name: str) -> TableMap:
    """A map that stormctl brings along."""
    if name not in shipped_maps():
        remedy = f"{suggest(name, shipped_maps())} A map of your own is named by its file, as ./map.yaml."
        raise MapError(f"there is no map {name!r}", remedy=remedy)
    return _read(FOLDER / f"{name}.yaml")


def _read(path: Path) -> TableMap:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_MAP_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise MapError(f"the map {path} cannot be read: {reason}", remedy="Check the path.") from error
    if len(content) > MAX_MAP_BYTES:
        raise MapError(f"{path} is larger than a map can be", remedy="Give the map, and the table as the path.")
    return TableMap.parse(_parsed(content, path), path.name)


def _depth(content: bytes) -> int:
    """How many brackets are open at once, or dashes begin a line, at the most."""
    depth = most = 0
    for byte in content:
        if byte in b"[{":
            depth += 1
            most = max(most, depth)
        elif byte in b"]}":
            depth -= 1
    return max(most, *(line.count(b"- ") for line in content.split(b"\n")), 0)


def _parsed(content: bytes, path: Path) -> Any:
    import yaml

    if _depth(content) > MAX_DEPTH:
        raise MapError(f"{path.name} is nested too deeply to be a map", remedy="See docs/maps.md.")
    try:
        # aliases multiply: nine of them can stand for a billion values
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(content, Loader=yaml.SafeLoader)):
            raise MapError(f"{path.name} refers to other parts of itself", remedy="Write the values out.")
        return yaml.safe_load(content)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = "" if mark is None else f", line {mark.line + 1},"
        raise MapError(f"{path.name}{line} is not YAML", remedy="See docs/maps.md for how a map is written.") from None
    except (RecursionError, ValueError, OverflowError, TypeError, AttributeError, LookupError) as error:
        reason = type(error).__name__
        raise MapError(f"{path.name} is no YAML that a map can be: {reason}", remedy="See docs/maps.md.") from None
