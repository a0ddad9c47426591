"""The commands: parse, call, exit code. No logic lives here."""

from __future__ import annotations

from stormctl.cli.app import main

__all__ = ["main"]
