"""Rules of the house that no room can check for itself."""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

HEAVY = ("pandas", "matplotlib", "psycopg", "jinja2", "pyarrow", "scipy", "numpy")
#: What the rooms that only think may not load either.
EDGES = (*HEAVY, "yaml", "msgspec", "rich", "typer", "cbor2", "zstandard")


def loaded(code: str) -> set[str]:
    """The top-level modules that are loaded after running some code in a fresh interpreter."""
    script = f"{code}\nimport sys\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    return set(ran.stdout.splitlines()[-1].split())


def test_arrows_between_rooms_run_one_way(root: Path) -> None:
    pytest.importorskip("importlinter", reason="import-linter is not installed")
    ran = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("room", ["history", "engine", "sweeps"])
def test_rooms_that_only_think_load_nothing_heavy(room: str) -> None:
    assert loaded(f"import stormctl.{room}") & set(EDGES) == set()


def test_help_loads_nothing_heavy() -> None:
    code = "import contextlib, io\nfrom stormctl.cli import main\n"
    code += "with contextlib.redirect_stdout(io.StringIO()):\n    main(['--help'])"
    assert loaded(code) & set(HEAVY) == set()


def test_modules_are_small(root: Path) -> None:
    sizes = {path: path.stat().st_size for path in (root / "stormctl").rglob("*.py") if path.stat().st_size > 200}
    assert {str(path): size for path, size in sizes.items() if size > 25_000} == {}
    assert statistics.median(sizes.values()) < 6 * 1024
    assert statistics.quantiles(sizes.values(), n=10)[-1] < 16 * 1024


def test_the_tests_mirror_the_rooms(root: Path) -> None:
    rooms = {path.parent.name for path in (root / "stormctl").glob("*/__init__.py")}
    tested = {path.parent.name for path in (root / "tests").glob("*/test_*.py")}
    assert tested - rooms <= {"project"}


def test_the_version_is_one(root: Path) -> None:
    import stormctl

    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert "version" in project["dynamic"]
    assert re.match(r"\d+\.\d+\.\d+", stormctl.__version__)
    assert f"## {stormctl.__version__}" in (root / "CHANGELOG.md").read_text()


def test_the_workflow_asks_for_no_more_than_it_needs(root: Path) -> None:
    yaml = pytest.importorskip("yaml")
    workflow = yaml.safe_load((root / ".github" / "workflows" / "repro.yml").read_text())
    assert workflow["permissions"] == {"contents": "read"}
    action = yaml.safe_load((root / ".github" / "actions" / "stormctl" / "action.yml").read_text())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]] + action["runs"]["steps"]
    uses = [step["uses"] for step in steps if "uses" in step]
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}|\./\.github/actions/stormctl", one) for one in uses)
    assert len({one.partition("@")[0]: one for one in uses}) == len(set(uses))  # one commit of each
    runs = "\n".join(step.get("run", "") for step in steps)
    assert "stormctl" in runs
    assert "${{" not in runs  # inputs reach the shell as variables, never as text


def test_no_job_that_may_write_runs_code_of_the_repository(root: Path) -> None:
    yaml = pytest.importorskip("yaml")
    workflow = yaml.safe_load((root / ".github" / "workflows" / "repro.yml").read_text())
    writing = [job for job in workflow["jobs"].values() if "write" in job.get("permissions", {}).values()]
    assert [job["permissions"] for job in writing] == [{"pull-requests": "write"}]
    for job in writing:
        assert not any(step.get("uses", "").startswith(("actions/checkout", "./")) for step in job["steps"])
        assert "stormctl/bin" not in str(job)
    assert "continue-on-error" in str(writing)


def test_every_pinned_action_says_which_version_it_is(root: Path) -> None:
    for path in (root / ".github").rglob("*.yml"):
        for line in path.read_text().splitlines():
            if "uses: actions/" in line:
                assert re.search(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


def test_the_shell_of_every_step_parses(root: Path) -> None:
    yaml = pytest.importorskip("yaml")
    workflow = yaml.safe_load((root / ".github" / "workflows" / "repro.yml").read_text())
    action = yaml.safe_load((root / ".github" / "actions" / "stormctl" / "action.yml").read_text())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]] + action["runs"]["steps"]
    for step in steps:
        if "run" in step:
            checked = subprocess.run(["bash", "-n"], input=step["run"], text=True, capture_output=True, check=False)
            assert checked.returncode == 0, checked.stderr
