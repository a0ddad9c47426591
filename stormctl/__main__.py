"""``python -m stormctl``."""

from __future__ import annotations

import sys

from stormctl.cli import main

if __name__ == "__main__":
    sys.exit(main())
