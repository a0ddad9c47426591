"""Whatever a name or a message holds, it stays text: in a terminal, in a job's log, in GitHub's markdown."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.history import digest_value
from stormctl.report.harmless import fence, markdown, plain, redact, unheard

NASTY = st.text(
    st.one_of(
        st.sampled_from(list("\\`*_<>|[](){}#@:&!~$\n\r\t\x1b\x00\u202e\u200f-=+.'\"")),
        st.sampled_from("abz09"),
        st.characters(),
    ),
    max_size=60,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a | b", "a \\| b"),
        ("<script>alert(1)</script>", "\\<script\\>alert(1)\\</script\\>"),
        ("[here](javascript:x)", "\\[here\\](javascript:x)"),
        ("ask @octocat", "ask @\u200boctocat"),
        ("&#64;octocat", "&amp;#\u200b64;octocat"),
        ("as in #12 and GH-3", "as in #\u200b12 and GH-\u200b3"),
        ("https://evil.example", "https\u200b://evil.example"),
        ("::set-output name=x::y", ":\\:set-output name=x:\\:y"),
        ("# no heading", "\\# no heading"),
        ("1. no list", "1\\. no list"),
        ("\x1b[2Jgone", "\\\\x1b\\[2Jgone"),
        ("step_created: log has recoverStep", "step_created: log has recoverStep"),
    ],
)
def test_markdown_shows_what_was_written_and_does_nothing(text: str, shown: str) -> None:
    if text.startswith("\x1b"):
        assert "\x1b" not in markdown(text)
        assert "2Jgone" in markdown(text)
    else:
        assert markdown(text) == shown


@given(NASTY)
def test_no_text_leaves_its_cell(text: str) -> None:
    shown = markdown(text)
    assert "\n" not in shown
    assert "\r" not in shown
    assert not re.search(r"(?<!\\)(?:\\\\)*[|<>`]", shown)
    assert all(char.isprintable() or char == "\u200b" for char in shown)


@given(NASTY)
def test_no_text_mentions_anybody_or_commands_a_runner(text: str) -> None:
    for shown in (markdown(text), plain(text)):
        assert "::" not in shown
        assert "##[" not in shown
    assert not re.search(r"@\w", markdown(text))
    assert "\n" not in plain(text)
    assert plain(text).isprintable() or not plain(text)


def test_escaped_markdown_mentions_nobody_and_keeps_its_references() -> None:
    assert unheard("\\*x\\* @octocat #3543 a::b") == "\\*x\\* @\u200boctocat #3543 a:\\:b"


@given(NASTY)
def test_a_block_of_code_ends_where_it_should(text: str) -> None:
    lines = fence(text).split("\n")
    mark = lines[-1]
    assert lines[0] == f"{mark}yaml"
    assert not any(line.strip().startswith(mark) for line in lines[1:-1])


def test_a_token_is_shown_by_its_digest_and_leaves_nothing_behind() -> None:
    text = redact("hook storm-17:0:1 of storm-17 is taken", ["storm-17", "storm-17:0:1"])
    assert "storm-17" not in text
    assert digest_value("storm-17:0:1")[:8] in text
    assert digest_value("storm-17")[:8] in text


def test_a_token_too_short_to_be_one_hides_nothing() -> None:
    assert redact("a b c", ["a", ""]) == "a b c"
