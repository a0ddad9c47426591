"""A storm in which every text is hostile and a message holds a hook's token, through every command and format.

Unit tests say what each escape does; these say that nothing printed or written goes round them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from stormctl.history import digest_value
from tests.report.with_logs import RUNS, build_with_logs

TOKEN = "hook-bearer-8c1f2a7d5e"
NASTY = (
    'x | <b onclick="a()">y</b><script>alert(1)</script> @octocat #12 https://evil.example [l](u) **z** `q` -->'
    "\r\n::set-output name=a::b\n##[error]c \x1b[2J\u202e\x07\ud800 [red]m[/red] {{ 7*7 }} ]]>"
)
#: Formats of a report whose text may be shown raw on a terminal, or be taken by a job's runner or by GitHub.
FORMATS = ("table", "md", "json", "github", "junit", "html")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """The storm with logs: one run of it is found by its log, another has a name that no file can have."""
    folder = build_with_logs(tmp_path_factory.mktemp("hostile") / "storm", root)
    said = f"hook {TOKEN}:poke is taken {NASTY}"
    path = folder / "attempts.ndjson"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        if row["outcome"] != "completed":
            text = said if row["run_id"] == RUNS[0] else NASTY  # whose log tells what is a token
            row.update(error_message=text, error_code=NASTY, note=text, flags=[NASTY])
            row["progress"] = {"last_event": NASTY, "quiet_ms": 12.0}
    for row in rows[:2]:
        row.update(run_id=NASTY, scenario=NASTY, condition=NASTY, generation=NASTY, world=NASTY)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    _into_log(folder / "logs" / f"{RUNS[0]}.ndjson")
    audit = folder / "audit" / f"{RUNS[0]}.ndjson"
    refused = {"writer": "w", "type": NASTY, "admitted": False, "reason": NASTY, "entered": 1, "returned": 2}
    audit.write_text(audit.read_text() + json.dumps(refused) + "\n")
    document = json.loads((folder / "sweeps.json").read_text())
    for log in document["logs"]:
        log["reasons"] = [NASTY]
        for sweep in log["sweeps"]:
            for finding in sweep["findings"]:
                text = said if log["run_id"] == RUNS[0] else NASTY
                finding.update(message=text, witness=[text], key=NASTY)
    (folder / "sweeps.json").write_text(json.dumps(document))
    (folder / "storm.json").write_text(json.dumps({"schema": "stormctl.storm/1", "reason": NASTY, "planned": 32}))
    (folder / "until.json").write_text(json.dumps({"schema": "stormctl.until/1", "conclusion": NASTY}))
    (folder / "env.json").write_text(json.dumps({NASTY: NASTY}))
    return folder


def _into_log(path: Path) -> None:
    """The token and hostile names go into the log itself."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    hook = next(line for line in lines if line["type"] == "hook_created")
    hook["token"] = f"{TOKEN}:poke"
    step = next(line for line in lines if line["type"] == "step_created")
    step["name"] = NASTY
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def report(stormctl: Callable[..., Any], folder: Path, form: str, out: Path) -> dict[str, str]:
    """Everything that the command printed and wrote, by what it is."""
    named = NASTY.replace("=", "").replace("\ud800", "")  # as a shell would give it
    arguments: list[object] = [
        "report",
        folder if form == "html" else f"{named}={folder}",
        "--format",
        form,
        "--report-only",
    ]
    if form == "github":
        arguments += ["--annotations", "--comment", out / "comment.md", "--out", out / "summary.md"]
    elif form in ("html", "junit"):
        arguments += ["--out", out / form]
    ran = stormctl(*arguments)
    assert ran.code == 0, ran.err
    files = {path.name: path.read_text() for path in sorted(out.iterdir()) if path.is_file()}
    return {"printed": ran.out, "errors": ran.err, **files}


class Elements(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.names: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names += [name for name, _ in attrs]


@pytest.mark.parametrize("form", FORMATS)
def test_no_format_of_a_report_lets_a_text_act_or_shows_a_token(
    stormctl: Callable[..., Any], made: Path, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    told = report(stormctl, made, form, tmp_path)
    for what, text in told.items():
        harmless(text, f"{form}: {what}", markdown=what.endswith(".md") or (form == "md" and what == "printed"))
    whole = "".join(told.values())
    assert "octocat" in whole  # it was told, and is harmless
    if form not in ("table", "json"):  # these tell what failures have in common, without what stood in them
        assert digest_value(f"{TOKEN}:poke")[:8] in whole
    if form == "html":
        seen = Elements(told["html"])
        assert seen.tags.count("script") == 1
        assert not [name for name in seen.names if name.startswith("on")]
    elif form == "junit":
        assert len(list(ET.fromstring(told["junit"]).iter("testcase"))) == 32
    elif form == "json":
        assert json.loads(told["printed"])["schema"] == "stormctl.report/1"


def harmless(text: str, where: str, *, markdown: bool) -> None:
    assert TOKEN not in text, where
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text), where
    if not where.endswith("html"):  # no job prints a page
        commands = [line for line in text.splitlines() if line.strip().startswith("::")]
        assert all(re.match(r"::(notice|error) title=", line) for line in commands), where
        assert where.partition(":")[0] in ("json", "junit") or "##[" not in text or markdown, where
    if markdown:
        outside = re.sub(r"(?s)```.*?```|<!--.*?-->", "", text)  # neither a block of code nor a comment is read so
        for acts in ("@octocat", "#12", "https://", "<b ", "<script>"):
            assert acts not in outside.replace("\\<b", "").replace("\\<script\\>", ""), (where, acts)
        assert not re.search(r"(?m)^\s*\|.*(?<!\\)\[l(?<!\\)\]", outside), where


@pytest.mark.parametrize("form", ["table", "json", "md"])
@pytest.mark.parametrize("outcome", ["corrupted", "contradicting"])
def test_no_comparison_lets_a_text_act(stormctl: Callable[..., Any], made: Path, form: str, outcome: str) -> None:
    ran = stormctl("diff", made, "--outcome", outcome, "--format", form, "--report-only")
    harmless(ran.out, f"diff {form}", markdown=form == "md")
    harmless(ran.err, f"diff {form}", markdown=False)


@pytest.mark.parametrize("form", ["table", "json", "ndjson", "md", "junit"])
def test_no_sweep_of_its_logs_lets_a_text_act(stormctl: Callable[..., Any], made: Path, form: str) -> None:
    ran = stormctl("sweep", made / "logs" / f"{RUNS[0]}.ndjson", "--format", form, "--report-only")
    harmless(ran.out, f"sweep {form}", markdown=form == "md")
    harmless(ran.err, f"sweep {form}", markdown=False)


def test_the_summary_that_a_run_leaves_is_harmless(made: Path) -> None:
    from stormctl.report.load import load_artefact
    from stormctl.report.summary import summary_text

    harmless(summary_text(load_artefact(made)), "summary.md", markdown=True)
