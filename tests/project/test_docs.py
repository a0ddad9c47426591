"""The README against the program: a command, option or exit code that it does not mention fails."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from stormctl import errors
from stormctl.cli.app import app
from stormctl.cli.exit_code import PRECEDENCE
from stormctl.storm.plan import KEYS

COMMANDS: dict[str, Any] = {
    name: command for name, command in typer.main.get_command(app).commands.items() if not command.hidden
}
INTERNAL: set[str] = set()  # commands that only other commands start


def parameters(command: Any) -> Iterator[Any]:
    """Those of a command, and of the commands in it."""
    yield from command.params
    for inner in getattr(command, "commands", {}).values():
        yield from parameters(inner)


OPTIONS = [
    (name, option)
    for name, command in COMMANDS.items()
    if name not in INTERNAL
    for parameter in parameters(command)
    if parameter.param_type_name == "option"
    for option in parameter.opts
    if option not in ("--help", "-h")
]
INNER = [
    (f"{name} {inner}", command)
    for name, outer in COMMANDS.items()
    for inner, command in getattr(outer, "commands", {}).items()
]
EXIT_CODES = sorted(value for name, value in vars(errors).items() if name.startswith("EXIT_"))


@pytest.fixture(scope="module")
def readme() -> str:
    return (Path(__file__).resolve().parents[2] / "README.md").read_text()


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - INTERNAL))
def test_the_readme_names_every_command(readme: str, name: str) -> None:
    assert f"stormctl {name}" in readme


@pytest.mark.parametrize(("name", "command"), INNER)
def test_the_readme_names_every_command_inside_a_command(readme: str, name: str, command: Any) -> None:
    assert f"stormctl {name}" in readme
    examples = [line for line in (command.help or "").splitlines() if line.startswith("Example:")]
    assert examples
    assert all(f"stormctl {name}" in line and len(line) <= 80 for line in examples)


@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_the_readme_names_every_option_in_its_commands_section(readme: str, name: str, option: str) -> None:
    section = re.search(rf"^### stormctl {name}\n(.*?)(?=^##|\Z)", readme, re.MULTILINE | re.DOTALL)
    assert section is not None, f"README.md has no section `### stormctl {name}`"
    assert re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", section[1])


@pytest.mark.parametrize("code", EXIT_CODES)
def test_the_readme_explains_every_exit_code(readme: str, code: int) -> None:
    assert re.search(rf"^\| {code} \| \w", readme, re.MULTILINE)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_helps_with_an_example_that_fits_a_line(name: str) -> None:
    examples = [line for line in (COMMANDS[name].help or "").splitlines() if line.startswith("Example:")]
    assert examples
    assert all(f"stormctl {name}" in line and len(line) <= 80 for line in examples)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_shows_brackets_that_are_meant(name: str) -> None:
    """Unescaped, ``nets[clock=delivered]`` is taken for a style and shown as ``nets``."""
    shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200"}).output
    for line in (COMMANDS[name].help or "").splitlines():
        meant = line.replace("\\[", "[").strip()
        if "[" in meant:
            assert meant in shown


@pytest.mark.parametrize("key", KEYS)
def test_every_key_of_a_plan_is_documented(root: Path, key: str) -> None:
    assert f"| `{key}` |" in (root / "docs" / "artefacts.md").read_text()


def test_links_between_documents_lead_somewhere(root: Path) -> None:
    for page in [*root.glob("*.md"), *(root / "docs").glob("*.md"), *(root / "tests").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_page_is_reached_from_the_readme(root: Path) -> None:
    reached, left = set[Path](), [root / "README.md"]
    while left:
        page = left.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        left += [(page.parent / link).resolve() for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())]
    assert set((root / "docs").glob("*.md")) <= reached


def test_the_page_of_exit_codes_tells_every_code_and_every_command(root: Path) -> None:
    page = (root / "docs" / "exit-codes.md").read_text()
    for code in EXIT_CODES:
        assert f"| {code} | " in page
    order = ", ".join(map(str, PRECEDENCE))
    assert f"the first of {order}, {errors.EXIT_CLEAN} is the code" in page
    for name in sorted(set(COMMANDS) - INTERNAL):
        assert f"`{name}" in page, name
