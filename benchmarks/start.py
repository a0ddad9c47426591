"""How long the command line takes to say what it can do, beside an interpreter that does nothing.

python benchmarks/start.py
"""

from __future__ import annotations

import subprocess
import sys

from _measure import show, wall

GOAL_S = 0.3


def main() -> None:
    print(f"Start, Python {sys.version.split()[0]}.")
    bare = wall(lambda: run("-c", "pass"), 7)
    show("reference: python -c pass", bare, "s")
    show("stormctl --help", wall(lambda: run("-m", "stormctl", "--help"), 7), "s", goal=GOAL_S, peer=bare)
    show("stormctl sweep --help", wall(lambda: run("-m", "stormctl", "sweep", "--help"), 7), "s", peer=bare)


def run(*arguments: str) -> None:
    """Run the interpreter that runs this script, and wait for it."""
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
