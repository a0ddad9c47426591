"""From the templates of an app's file to what is sent, and from an answer to what is read of it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from stormctl.errors import UsageError
from stormctl.storm.url_app import PLACE, VARIABLE


def with_environment(text: str, where: str, environment: Mapping[str, str] | None = None) -> str:
    """The text with each ``${NAME}`` replaced. UsageError names a variable that is not set, and never its value."""
    known = os.environ if environment is None else environment
    for name in VARIABLE.findall(text):
        if not known.get(name):
            raise UsageError(f"{where} needs the environment variable {name}, which is not set", remedy=f"Set {name}.")
    return VARIABLE.sub(lambda found: known[found[1]], text)


def in_body(template: Any, values: Mapping[str, Any]) -> Any:
    """The template with its placeholders filled: alone in a text one becomes its value, within one it becomes text."""
    if isinstance(template, str):
        whole = PLACE.fullmatch(template)
        if whole is not None:
            return values.get(whole[1])
        return PLACE.sub(lambda found: _text(values.get(found[1])), template)
    if isinstance(template, Mapping):
        return {key: in_body(value, values) for key, value in template.items()}
    if isinstance(template, list):
        return [in_body(value, values) for value in template]
    return template


def in_path(template: str, values: Mapping[str, Any]) -> str:
    """The path with its placeholders filled and quoted; whatever else is no part of a URL is quoted, too."""
    filled = PLACE.sub(lambda found: quote(_text(values.get(found[1])), safe=""), template)
    return quote(filled, safe="/?&=%:@!$'()*+,;~-._")


def at(value: Any, path: str) -> Any:
    """What lies in an answer at ``data.run.id``; a number counts in a list. None where there is nothing; the answer
    itself for an empty path."""
    for step in path.split(".") if path else ():
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, allow_nan=False)
