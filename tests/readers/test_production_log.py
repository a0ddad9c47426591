"""The real corrupted log of vercel/workflow #3543, where it is at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from stormctl.history import Capture
from stormctl.readers import open_captures, write_capture

LOG = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "wrun-41KZYJ92TP-storm-log.json"


@pytest.mark.skipif(not LOG.exists(), reason="the production log is not part of the project")
def test_it_is_read_whole_and_survives_our_own_format(tmp_path: Path) -> None:
    (capture,) = open_captures([LOG])
    assert isinstance(capture, Capture)
    assert len(capture.log) == 652
    assert capture.evidence.omitted == (1, 2, 655)
    ranks = {capture.log.rank(event) for event in capture.log} - {None}
    assert ranks == set(range(205))
    (again,) = open_captures([write_capture(capture, tmp_path)])
    assert isinstance(again, Capture)
    assert again.log == capture.log
    assert again.evidence.missing == capture.evidence.missing
