"""Print a pip constraint for each lower bound of a pyproject.toml: the oldest release that it allows.

python .ci/lowest.py pyproject.toml
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

BOUND = re.compile(r"(?P<name>[\w.-]+)(\[[\w,-]+\])?>=(?P<version>[\w.]+)")

project = tomllib.loads(Path(sys.argv[1]).read_text())["project"]
for group in (project["dependencies"], *project["optional-dependencies"].values()):
    for requirement in group:
        bound = BOUND.fullmatch(requirement)
        if bound is None:
            sys.exit(f"{requirement!r} has no plain lower bound: write it as name>=version")
        sys.stdout.write(f"{bound['name']}=={bound['version']}\n")
