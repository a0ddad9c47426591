"""A node and an npm that do as they are told, on a PATH of their own: no network, no packages.

fake = FakeTools(tmp_path)                       # answers for workflow 4.8.9 and 5.0.0-beta.55
fake.says("npm install", fake.failure("ETARGET", "No matching version found for x@1"))
fake.calls()                                     # every command line, in order
"""

from __future__ import annotations

import json
import marshal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stormctl.targets.sdk.workflows import TWINS

#: Started some hundred times, so it imports only what is built into the interpreter.
_PROGRAM = """\
#!{python} -SE
import marshal, os, sys, time

with open({told!r}, "rb") as file:
    told = marshal.load(file)
name, asked = os.path.basename(sys.argv[0]), sys.argv[1:]
with open({calls!r}, "a") as calls:
    calls.write("\\t".join([name, *asked]) + "\\n")
words = [word for word in asked if not word.startswith("--") or word == "--version"]
key = " ".join([name, *words])
answers = told.get(key)
if answers is None:
    print("npm error code E404\\nnpm error 404 No match found for " + " ".join(words), file=sys.stderr)
    sys.exit(1)
used = os.path.join({used!r}, key.replace("/", "_"))
try:
    count = os.path.getsize(used)
except OSError:
    count = 0
with open(used, "a") as file:
    file.write("x")
answer = answers[min(count, len(answers) - 1)]
time.sleep(answer.get("sleep", 0))
for path, text in answer.get("writes", {{}}).items():
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
print(answer.get("out", ""))
print(answer.get("err", ""), file=sys.stderr)
sys.exit(answer.get("code", 0))
"""

VERSIONS = ["4.6.1", "4.8.9", "5.0.0-beta.26", "5.0.0-beta.35", "5.0.0-beta.55", "5.0.1"]
POSTGRES_VERSIONS = ["4.3.0", "4.3.7", "5.0.0-beta.27", "5.0.0-beta.29"]


class FakeTools:
    """The two programs, what they answer, and what they were asked."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self._told = folder / "told"
        self._calls = folder / "calls"
        self._answers: dict[str, list[dict[str, Any]]] = {}
        (folder / "used").mkdir(parents=True)
        self.bin.mkdir()
        program = _PROGRAM.format(
            python=sys.executable, told=str(self._told), calls=str(self._calls), used=str(folder / "used")
        )
        for name in ("node", "npm"):
            (self.bin / name).write_text(program)
            (self.bin / name).chmod(0o755)
        self.says("node --version", out="v20.20.2")
        self.says("npm --version", out="11.0.0")
        self._registry()
        self.says("npm install", writes={"package-lock.json": '{"lockfileVersion": 3}', "node_modules/x": "x" * 1000})
        for extension in ("js", "mjs"):
            self.says(f"node build.mjs {extension}", writes={".well-known/workflow/v1/manifest.json": "{}"})
        self.checks()

    def _registry(self) -> None:
        self.view("workflow versions", VERSIONS)
        self.view("workflow version", "4.8.9")
        self.view("@workflow/world-postgres versions", POSTGRES_VERSIONS)
        for version, world, local in (
            ("4.8.9", "4.5.0", "4.4.1"),
            ("5.0.0-beta.35", "5.0.0-beta.21", "5.0.0-beta.29"),
            ("5.0.0-beta.55", "5.0.0-beta.37", "5.0.0-beta.46"),
        ):
            self.view(f"workflow@{version} dependencies", {"@workflow/core": version, "@workflow/cli": version})
            self.view(
                f"@workflow/core@{version} dependencies", {"@workflow/world": world, "@workflow/world-local": local}
            )
            self.view(f"@workflow/cli@{version} dependencies", {"@workflow/builders": version})
        for version, world in (
            ("4.3.0", "4.2.1"),
            ("4.3.7", "4.5.0"),
            ("5.0.0-beta.27", "5.0.0-beta.21"),
            ("5.0.0-beta.29", "5.0.0-beta.23"),
        ):
            self.view(f"@workflow/world-postgres@{version} dependencies", {"@workflow/world": world})

    # -- telling -----------------------------------------------------------------------------------------------------

    def says(self, command: str, *more: Mapping[str, Any], **answer: Any) -> None:
        """What a command answers; with more than one answer, one after the other, the last again and again."""
        self._answers[command] = [dict(answer), *map(dict, more)] if answer else [dict(one) for one in more]
        self._told.write_bytes(marshal.dumps(self._answers))

    def view(self, what: str, value: Any) -> None:
        """What the registry says."""
        self.says(f"npm view {what}", out=json.dumps(value))

    def checks(self, **found: Any) -> None:
        """What a project says of itself."""
        whole = {
            "ok": True,
            "specVersion": 7,
            "attributeWriter": "setAttributes",
            "workflows": [twin.workflow_name for twin in TWINS.values()],
            **found,
        }
        for stage in ("world", "built"):
            self.says(f"node check.mjs {stage}", out=f"noise\nSTORMCTL {json.dumps(whole)}")

    @staticmethod
    def failure(code: str, words: str) -> dict[str, Any]:
        """How npm fails."""
        return {"code": 1, "err": f"npm error code {code}\nnpm error {words}\nnpm error A complete log of this run"}

    # -- looking -----------------------------------------------------------------------------------------------------

    def calls(self) -> list[list[str]]:
        """Every command line so far, without versions being asked for."""
        if not self._calls.exists():
            return []
        lines = [line.split("\t") for line in self._calls.read_text().splitlines()]
        return [line for line in lines if "--version" not in line]

    def count(self, *words: str) -> int:
        """How many command lines hold these words."""
        return sum(1 for call in self.calls() if set(words) <= set(call))
