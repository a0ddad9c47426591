"""Printing that survives a closed pipe, so that the exit code stays the command's own."""

from __future__ import annotations

import os
import shutil
import sys


def width() -> int:
    """The columns to write for: those of the terminal, 80 where there is none."""
    return shutil.get_terminal_size((80, 24)).columns


def emit(text: str) -> None:
    """Print a text to standard output. A reader that went away, as ``head`` does, is no error."""
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # the interpreter flushes once more at exit, and must not find the pipe closed again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding or "ascii"
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding) + "\n")
