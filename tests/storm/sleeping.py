"""An engine that says that it has begun and never ends: for tests of what becomes of a sweep's processes."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any


def sleeps(_name: str, _workload: Any, _input: Any) -> Any:
    """As an engine is opened: leave a file named by this process in the folder ``$SLEEPING``, and stay here."""
    (Path(os.environ["SLEEPING"]) / str(os.getpid())).touch()
    time.sleep(600)
