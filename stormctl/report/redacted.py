"""Attempts without the tokens of their hooks: these are bearer secrets, and an error's text may name one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from stormctl.history import digest_value
from stormctl.report.harmless import redact
from stormctl.storm.attempt import Attempt

_TOKEN = re.compile(rb'"token":\s*("(?:[^"\\]|\\.)*")')
_QUOTED = re.compile(r"""(?i)(\btokens?\b[\s:=]*)(["'`])([^"'`\s]{4,})\2""")
#: A token that others begin with, as ``storm-17:0:1`` begins with ``storm-17``, is as long as this at least.
_SHORTEST_STEM = 12


def redacted(attempt: Attempt, folder: Path) -> Attempt:
    """The attempt with the tokens that its log holds, and whatever a text calls one, replaced by their digests."""
    if not attempt.error_message and not attempt.note:
        return attempt
    return without_tokens(attempt, tokens_of(folder, attempt.run_id))


def without_tokens(attempt: Attempt, tokens: Iterable[str]) -> Attempt:
    """The attempt with these tokens, and whatever a text calls one, replaced by their digests."""
    known = tuple(tokens)
    return replace(
        attempt,
        error_message=attempt.error_message and hidden(attempt.error_message, known),
        note=attempt.note and hidden(attempt.note, known),
    )


def hidden(text: str, tokens: Iterable[str]) -> str:
    """The text with these tokens, and whatever it calls one, replaced by their digests."""
    text = redact(text, [part for token in tokens for part in (token, _stem(token))])
    return _QUOTED.sub(lambda found: f"{found[1]}digest {digest_value(found[3])[:8]}", text)


def _stem(token: str) -> str:
    stem = token.partition(":")[0]
    return stem if len(stem) >= _SHORTEST_STEM else token


def tokens_of(folder: Path, run_id: str | None) -> Iterator[str]:
    """Every token of a run's log; nothing where it has none. An id that is a path leads nowhere."""
    if not run_id or "/" in run_id or "\\" in run_id or "\0" in run_id:
        return
    try:
        content = (folder / "logs" / f"{run_id}.ndjson").read_bytes()
    except (OSError, ValueError):  # a name that no file can have is a ValueError
        return
    for found in set(_TOKEN.findall(content)):
        try:
            yield str(json.loads(found))
        except ValueError:
            continue
