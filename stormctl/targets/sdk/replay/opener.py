"""From a name such as ``sdk:4.8.9`` or ``sdk:own[WORKFLOW_LOG_ORDER_DRAWS=0]`` to the real engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from stormctl.engine.door import Engine
from stormctl.errors import UsageError
from stormctl.history import Capture
from stormctl.storm.real_name import OWN, RealName, parse_real
from stormctl.sweeps.base import Scenario
from stormctl.sweeps.plan import open_own
from stormctl.targets.sdk.printed import core_version
from stormctl.targets.sdk.replay.bundle import Bundle, bundle_of_version, find_bundle
from stormctl.targets.sdk.replay.engine import SCHEME, NotOffered, SdkEngine
from stormctl.targets.sdk.versions import supported

#: where a capture of a storm keeps the switches that its server was started with
ENVIRONMENT = "environment"


def real_name(name: str, *, install: bool = True) -> str:
    """The name as a plan has it: a version as it was published, an absolute path of a folder, switches in order.

    A bundle is looked up here, so that what is wrong with it is said before any log is read; a version that is not
    there yet is installed, unless ``install`` says not to. UsageError for a name that is neither.
    """
    found = _known(parse_real(name))
    if found.is_path or (found.is_version and install):
        _bundle(found.named)
    return str(found)


def open_engine(name: str, capture: Capture, scenario: Scenario | None) -> Engine:
    """The engine of that name for a log: the real one behind ``sdk:``, else one of our own generations.

    ``sdk:own`` is the version that the log names, under the switches that its capture tells of.
    """
    if not name.startswith(SCHEME):
        return open_own(name, capture, scenario)
    found = parse_real(name)
    if found.is_own:
        version = core_version(capture.log)
        if version is None:
            raise NotOffered(
                "the log does not say which version wrote it", remedy="Name the version or the folder of the bundle."
            )
        found = replace(found.within(_environment(capture)), named=version)
    return SdkEngine(_bundle(_known(found).named), capture, name=name, environment=found.switches)


def _known(found: RealName) -> RealName:
    """The name with its version as it was published. UsageError for a version that is none, and a path of nothing."""
    if found.is_version:
        return replace(found, named=str(supported(found.named)))
    if found.is_path and not Path(found.named).exists():
        raise UsageError(
            f"there is no bundle {found.named}",
            remedy="Give the folder that holds flow.js or flow.mjs, a version such as sdk:4.8.9, or sdk:own.",
        )
    return found


def _environment(capture: Capture) -> Mapping[str, str]:
    found = capture.data.get(ENVIRONMENT)
    return found if isinstance(found, Mapping) else {}


@lru_cache(maxsize=32)
def _bundle(named: str) -> Bundle:
    return find_bundle(Path(named)) if named.startswith("/") else bundle_of_version(named)


__all__ = ["OWN", "open_engine", "real_name"]
