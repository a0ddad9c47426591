"""The report of sweeps as JUnit XML: a test case per log. A violation fails it, unknown skips it.

A file that cannot be read is an error. The counts stand at the beginning, so the cases wait in a temporary file until
all are there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from types import TracebackType
from xml.sax.saxutils import escape, quoteattr

from stormctl.readers import Unreadable
from stormctl.sweeps import LogReport, Severity, Verdict
from stormctl.sweeps.witness import clean

SUITE = "stormctl sweep"
#: Findings of one log that are told; the rest is counted.
MOST_FINDINGS = 20
_IN_MEMORY, _CHUNK = 1 << 20, 1 << 16


class Junit:
    """The cases as they come, and then the whole; a context manager."""

    def __init__(self) -> None:
        self._cases = tempfile.SpooledTemporaryFile(  # noqa: SIM115 - closed with this
            _IN_MEMORY, mode="w+", encoding="utf-8", newline="\n"
        )
        self._tests = self._failures = self._skipped = self._errors = 0

    def __enter__(self) -> Junit:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._cases.close()

    def take(self, item: LogReport | Unreadable) -> None:
        """Add the case of one log, or of a file that cannot be read."""
        self._tests += 1
        for line in self._error(item) if isinstance(item, Unreadable) else self._log(item):
            self._cases.write(f"{line}\n")

    def text(self) -> Iterator[str]:
        """The whole, piece by piece; each is of whole lines."""
        counts = f'tests="{self._tests}" failures="{self._failures}" errors="{self._errors}" skipped="{self._skipped}"'
        yield f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites {counts}>\n'
        yield f'<testsuite name="{SUITE}" {counts}>\n'
        self._cases.seek(0)
        while lines := self._cases.readlines(_CHUNK):
            yield "".join(lines)
        yield "</testsuite>\n</testsuites>\n"

    def _log(self, log: LogReport) -> Iterator[str]:
        yield _case(log.source, log.world or "unknown")
        if log.verdict is Verdict.VIOLATED:
            self._failures += 1
            counts = ", ".join(f"{sweep} {count}" for sweep, count in log.fatal_by_sweep().items())
            yield f"<failure message={_quoted(counts)}>{_text(_findings(log))}</failure>"
        elif log.verdict is Verdict.UNKNOWN:
            self._skipped += 1
            yield f"<skipped message={_quoted('; '.join(log.reasons))}/>"
        yield "</testcase>"

    def _error(self, broken: Unreadable) -> Iterator[str]:
        self._errors += 1
        yield _case(broken.source, "unreadable")
        yield f"<error message={_quoted(broken.error)}>{_text([broken.text])}</error>"
        yield "</testcase>"


def _case(source: str, world: str) -> str:
    return f"<testcase classname={_quoted(f'stormctl.{world}')} name={_quoted(source)}>"


def _findings(log: LogReport) -> Iterator[str]:
    fatal = [finding for finding in log.findings if finding.severity is Severity.FATAL]
    yield f"run {log.run_id}, {log.events} events, profile {log.profile}"
    for finding in fatal[:MOST_FINDINGS]:
        yield f"{finding.sweep}: {finding.message}"
        yield from (f"  {line}" for line in finding.witness)
    if len(fatal) > MOST_FINDINGS:
        yield f"and {len(fatal) - MOST_FINDINGS} more"


def _text(lines: Iterator[str] | list[str]) -> str:
    return escape("\n".join(clean(line) for line in lines))


def _quoted(text: str) -> str:
    return quoteattr(clean(text))
