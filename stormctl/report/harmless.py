"""A stranger's text made harmless where it is shown: in a terminal, in a CI job's log, in GitHub's markdown.

Names of runs, messages of errors and names of steps come from logs, and a log may come from anybody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from stormctl.history import digest_value
from stormctl.sweeps.witness import clean

#: nothing to see, and it parts what GitHub would read as one word: a mention, a reference, an address
_PART = "\u200b"
_MENTION = re.compile(r"@(?=\w)")
_REFERENCE = re.compile(r"#(?=\d)|(?<=\b[Gg][Hh])-(?=\d)")
_ADDRESS = re.compile(r"(?<=[A-Za-z])(?=://)|(?<=\b[Ww][Ww][Ww])(?=\.)")
_COLONS = re.compile(r":(?=:)")
_MARKS = re.compile(r"[\\`*<>|\[\]~$]")


def plain(text: str) -> str:
    """For a terminal or a job's log: no cursor moves, and no line of it is a command to the machine that runs the job.

    A runner obeys lines that begin with ``::`` and any that hold ``##[``; where a text is folded, every place in it may
    begin a line.
    """
    return _COLONS.sub(": ", clean(" ".join(text.split()))).replace("##[", "# #[")


def markdown(text: str) -> str:
    """For GitHub's markdown: no markup, no table broken, nobody mentioned, nothing linked, no command."""
    text = clean(" ".join(text.split())).replace("&", "&amp;")
    text = _MARKS.sub(lambda mark: f"\\{mark[0]}", text)
    text = _COLONS.sub(r":\\", text).replace("##\\[", "\\#\\#\\[")
    text = re.sub(r"^(\d*)(?=[#+=.)-]+(?:\s|$))", r"\1\\", text)
    for pattern in (_MENTION, _REFERENCE):
        text = pattern.sub(lambda mark: mark[0] + _PART, text)
    return _ADDRESS.sub(_PART, text)


def unheard(text: str) -> str:
    """Markdown that is escaped already, in which nobody is mentioned and no line is a command to a job's runner."""
    return _MENTION.sub(f"@{_PART}", _COLONS.sub(r":\\", text))


def fence(text: str) -> str:
    """A block of code that the text cannot end: its fence is longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    mark = "`" * max(3, longest + 1)
    lines = "\n".join(_COLONS.sub(": ", clean(line)).replace("##[", "# #[") for line in text.splitlines())
    return f"{mark}yaml\n{lines}\n{mark}"


def redact(text: str, tokens: Iterable[str]) -> str:
    """The text with each token in it by its digest: tokens of hooks are bearer secrets. Longer ones go first, so that
    one that begins another leaves nothing of it."""
    for token in sorted(set(tokens), key=len, reverse=True):
        if len(token) > 3 and token in text:
            text = text.replace(token, f"token {digest_value(token)[:8]}")
    return text
