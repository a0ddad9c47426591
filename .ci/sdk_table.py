"""Put the newest storm of configs/sdk-table.yaml into docs/sdk.md: ``python .ci/sdk_table.py FOLDER PAGE``."""

from __future__ import annotations

import sys
from pathlib import Path

from stormctl.report.load import load_artefact
from stormctl.report.sdk_table import put_into, table_text

if __name__ == "__main__":
    folder, page = map(Path, sys.argv[1:])
    put_into(page, table_text(load_artefact(folder), "make sdk-table"))
