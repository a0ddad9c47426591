"""Write the logs of the reported cases: ``python -m tests.sweeps.write_cases fixtures/logs``.

What stands there is the same bytes each time; ``test_cases`` compares.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

import yaml

from stormctl.history import Capture
from stormctl.readers import write_capture
from tests.sweeps import case_logs, case_stores, case_tables
from tests.sweeps.case_base import Case, under

CASES: dict[str, Case] = {**case_logs.CASES.cases, **case_stores.CASES.cases, **case_tables.CASES.cases}
HEADER = "# Written by python -m tests.sweeps.write_cases; what a sweep of the log beside it must say.\n"


def write(folder: Path) -> None:
    """Every log, what it must be told to be, and the earlier captures."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, case in CASES.items():
        text = yaml.safe_dump(case.expectation(), sort_keys=False, width=110, allow_unicode=True)
        (folder / f"{name}.expect.yaml").write_text(HEADER + text)
        if case.log is not None:
            made = case.log()
            if isinstance(made, Capture):
                _log(made, folder, name)
            else:
                (folder / f"{name}.ndjson").write_text("".join(f"{json.dumps(row)}\n" for row in made))
        if case.earlier is not None:
            _log(case.earlier(), folder / "earlier", name)


def _log(made: Capture, folder: Path, name: str) -> None:
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as private:
        log = write_capture(under(made, name), Path(private))
        for file in (log, log.with_name(f"{log.stem}.meta.json")):
            shutil.copyfile(file, folder / file.name.replace(log.stem, name, 1))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
