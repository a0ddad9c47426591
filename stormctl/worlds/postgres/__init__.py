"""The Postgres world: how its server is found or started, and the store that speaks SQL.

Nothing is imported here, so that naming the world costs nothing where it is not used.
"""

from __future__ import annotations
