"""``--workload FILE:NAME`` as a whole command: what it shows, and one sentence with a remedy for every mistake."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormctl.engine import watchdog

Run = Callable[..., Any]
Stored = Callable[[str, str], None]
LOG = "fixtures/workflows/paid-early.ndjson"
ORDER = "fixtures/workflows/order.py:order"

#: what is typed, with FOLDER for a folder of the test's own
MISTAKES = [
    "FOLDER/none.py:order",
    "none.py:order",
    r"C:\shop\order.py:order",
    "FOLDER:order",
    "/dev/null:order",
    "FOLDER/notes.txt:order",
    "FOLDER/shop.py",
    "FOLDER/shop.py:",
    "FOLDER/shop.py::order",
    "FOLDER/shop.py:ordr",
    "FOLDER/shop.py:LIMIT",
    "FOLDER/shop.py:plain",
    "FOLDER/shop.py:one",
    "FOLDER/shop.py:yields",
    "FOLDER/shop.py:Order",
    "FOLDER/empty.py:order",
    "FOLDER/empty.py",
    "FOLDER/unclosed.py:order",
    "FOLDER/imports.py:order",
    "FOLDER/raises.py:order",
    "FOLDER/leaves.py:order",
    "order:order",
    "stpe-storm",
]

FILES = {
    "notes.txt": "",
    "shop.py": (
        "LIMIT = 3\n"
        "class Order: ...\n"
        "def plain(wf, input): ...\n"
        "async def order(wf, input): ...\n"
        "async def one(wf): ...\n"
        "async def yields(wf, input): yield 1\n"
    ),
    "empty.py": "",
    "unclosed.py": "async def order(wf, input):\n    return (1\n",
    "imports.py": "import sys\nimport no_such_module_at_all\n",
    "raises.py": "LIMITS = {}\nLIMIT = LIMITS['orders']\n",
    "leaves.py": "import sys\nsys.exit('usage: leaves.py FILE')\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_log_is_replayed_with_a_users_body(stormctl: Run, stored: Stored) -> None:
    ran = stormctl("sweep", LOG, "--workload", ORDER, "--engine", "registered", "--engine", "parked-idle")
    assert (ran.code, ran.err) == (1, "")
    assert "registered: 20 prefixes, clean through 20" in ran.out
    stored("user-workload.txt", ran.out)


def test_its_sound_twin_is_clean(stormctl: Run) -> None:
    ran = stormctl("sweep", LOG, "--workload", ORDER, "--engine", "registered")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"clean  {LOG}\n")


def test_every_mistake_is_one_sentence_and_a_remedy(stormctl: Run, stored: Stored, folder: Path) -> None:
    told = []
    for mistake in MISTAKES:
        ran = stormctl("sweep", LOG, "--workload", mistake.replace("FOLDER", str(folder)), "--engine", "nets")
        assert (ran.code, ran.out) == (2, ""), mistake
        assert ran.err.count("\n") == 1
        assert "Traceback" not in ran.err
        told.append(f"{mistake}\n  {ran.err.replace(str(folder), 'FOLDER')}")
    stored("user-workload-mistakes.txt", "".join(told))


def test_what_the_file_prints_is_no_part_of_the_report(stormctl: Run, tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text("print('loaded')\nasync def order(wf, input):\n    print('called')\n")
    ran = stormctl("sweep", LOG, "--workload", f"{tmp_path}/loud.py:order", "--engine", "nets", "--format", "json")
    assert json.loads(ran.out)["logs"]
    assert "loaded\ncalled\n" in ran.err


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError('no such sku')", "order.py:order raised ValueError: no such sku, and the run went on"),
        ("await __import__('asyncio').sleep(1)", "order.py:order raised RuntimeError: no running event loop"),
        ("raise SystemExit(0)", "order.py:order raised SystemExit, replayed from prefix 1"),
        ("while True: pass", "order.py:order ran for 0.2 s without coming to its next event, replayed from prefix 1"),
    ],
)
def test_a_body_that_misbehaves_leaves_the_log_unjudged(
    stormctl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, said: str
) -> None:
    monkeypatch.setattr(watchdog, "LIMIT_S", 0.2)
    (tmp_path / "order.py").write_text(f"async def order(wf, input):\n    {body}\n")
    ran = stormctl("sweep", LOG, "--workload", f"{tmp_path}/order.py:order", "--engine", "nets")
    assert (ran.code, ran.err) == (3, "")
    assert said in " ".join(ran.out.split())


def test_a_path_counts_from_the_current_folder_also_in_other_processes(
    stormctl: Run, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stormctl.cli import sweep_output

    monkeypatch.setattr(sweep_output.os, "cpu_count", lambda: 2)
    for name in ("one", "two", "three"):
        shutil.copy(root / LOG, tmp_path / f"{name}.ndjson")
        shutil.copy((root / LOG).with_suffix(".meta.json"), tmp_path / f"{name}.meta.json")
    ran = stormctl("sweep", tmp_path, "--workload", ORDER, "--engine", "dispenser", "--format", "json")
    assert [log["verdict"] for log in json.loads(ran.out)["logs"]] == ["clean"] * 3


def test_a_file_that_a_log_names_is_not_executed(stormctl: Run, tmp_path: Path, root: Path) -> None:
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w').close()\n")
    meta = json.loads((root / LOG).with_suffix(".meta.json").read_text())
    meta["run"]["workload"] = f"{tmp_path}/evil.py:order"
    (tmp_path / "log.meta.json").write_text(json.dumps(meta))
    shutil.copy(root / LOG, tmp_path / "log.ndjson")
    ran = stormctl("sweep", tmp_path / "log.ndjson", "--engine", "nets")
    assert ran.code == 3
    assert "evil.py:order" in "".join(ran.out.split())  # a long path is broken over lines
    assert not (tmp_path / "executed").exists()
