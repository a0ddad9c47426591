"""Versions of the SDK: read, ordered, and the nearest that exist."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.errors import UsageError
from stormctl.targets.sdk.versions import Version, nearest, parse, supported

PUBLISHED = ["4.0.1-beta.3", "4.6.1", "4.8.9", "5.0.0-beta.26", "5.0.0-beta.35", "5.0.0-beta.9"]


@pytest.mark.parametrize("text", ["4.8.9", "5.0.0-beta.55", "4.0.1-beta.3", "5.0.0"])
def test_a_version_is_written_as_it_was_read(text: str) -> None:
    assert str(parse(text)) == text


@pytest.mark.parametrize("text", ["workflow@4.8.9", "v4.8.9", " 4.8.9 "])
def test_a_version_may_be_written_as_npm_and_git_do(text: str) -> None:
    assert str(parse(text)) == "4.8.9"


@pytest.mark.parametrize(
    "text", ["", "4", "4.8", "latest", "beta.55", "4.8.9; rm", "4.8.9-", "../4.8.9", "^4.8.9", "4.8.9\n5"]
)
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no version of the Workflow SDK") as error:
        parse(text)
    assert "4.8.9" in error.value.remedy


def test_versions_are_ordered_as_semver_orders_them() -> None:
    ordered = [
        "4.8.9",
        "4.10.0",
        "5.0.0-alpha",
        "5.0.0-beta",
        "5.0.0-beta.9",
        "5.0.0-beta.10",
        "5.0.0-rc.1",
        "5.0.0",
        "5.0.1",
    ]
    assert [str(version) for version in sorted(map(parse, reversed(ordered)))] == ordered


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("5.0.0-beta.29", ["5.0.0-beta.26", "5.0.0-beta.35"]),
        ("4.8.10", ["4.8.9", "5.0.0-beta.9"]),
        ("9.9.9", ["5.0.0-beta.35"]),
        ("4.0.0", ["4.0.1-beta.3"]),
    ],
)
def test_the_nearest_published_versions_are_the_neighbours(wanted: str, found: list[str]) -> None:
    assert [str(version) for version in nearest(parse(wanted), PUBLISHED)] == found


@pytest.mark.parametrize("text", ["3.0.0", "6.0.0", "0.0.2"])
def test_a_major_version_that_the_host_cannot_serve_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"neither 4\.x nor 5\.x"):
        supported(text)


_PARTS = st.lists(st.one_of(st.integers(0, 99), st.from_regex(r"[a-z]{1,4}", fullmatch=True)), max_size=3)
_VERSIONS = st.builds(Version, st.integers(4, 5), st.integers(0, 20), st.integers(0, 20), _PARTS.map(tuple))


@given(_VERSIONS, _VERSIONS)
def test_order_is_total_and_texts_round_trip(one: Version, other: Version) -> None:
    assert parse(str(one)) == one
    assert (one < other) + (other < one) + (one == other) == 1
