"""DSNs are shown without anything secret, and what is no DSN is refused without repeating it."""

from __future__ import annotations

from string import ascii_letters, digits
from urllib.parse import quote

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from stormctl.errors import UsageError
from stormctl.worlds.postgres.dsn import UNSHOWN, check_dsn, host_of, password_of, redact, without_password

NAMES = st.text(ascii_letters + digits + "_-", min_size=1, max_size=8)
#: long enough to be told from the rest of a DSN by chance; of every sign that a keyboard has
PASSWORDS = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=6, max_size=20)
ROUTE = {"user": "alice", "host": "db.example.org", "port": "5433", "dbname": "storms"}
SHOWN_WORDS = " postgresql://alice@db.example.org:5433/storms user=alice host=db.example.org port=5433 dbname=storms"


def test_a_url_is_shown_without_its_password() -> None:
    dsn = "postgresql://alice:s3cret@db.example.org:5433/storms?sslmode=require"
    assert redact(dsn) == "postgresql://alice@db.example.org:5433/storms?sslmode=require"


def test_pairs_are_shown_as_pairs_without_the_password() -> None:
    assert redact("host=db user=alice password='s3 cret' dbname=storms") == "user=alice host=db dbname=storms"


@pytest.mark.parametrize("name", ["password", "passfile", "options", "sslpassword", "sslkey", "sslcert"])
def test_what_can_hold_a_secret_is_not_shown_wherever_it_stands(name: str) -> None:
    assert "s3cret" not in redact(f"postgresql://alice@db/storms?{name}=s3cret")
    assert "s3cret" not in redact(f"host=db {name}=s3cret user=alice")


def test_a_unix_socket_stays_usable_as_it_is_shown() -> None:
    dsn = "postgresql://stormctl@/stormctl?host=/var/tmp/pg/socket&port=5432"
    assert redact(dsn) == dsn


def test_several_hosts_keep_their_ports() -> None:
    assert redact("postgresql://a:b@one:1,two:2/db") == "postgresql://a@one:1,two:2/db"
    assert redact("postgresql://a:b@[::1]:5/db") == "postgresql://a@[::1]:5/db"


@pytest.mark.parametrize(
    "dsn",
    [
        "postgres//alice:s3cret@db",
        "postgresql://alice:s3/cret@db/storms",
        "postgresql://alice:s3@cret@db/storms",
        "postgresql://alice:s3cret",
        "postgresql://alice:12/s3cret@db/storms",
        "postgresql://alice:s3%zzcret@db/storms",
        "host=db password=s3 cret",
        "host=db password='s3cret",
        "host=db port=s3cret",
        "dbname=postgresql://alice:s3cret@db/storms",
        "s3cret",
    ],
)
def test_what_cannot_be_read_is_neither_shown_nor_accepted(dsn: str) -> None:
    assert redact(dsn) == UNSHOWN
    with pytest.raises(UsageError) as refused:
        check_dsn(dsn, "--dsn")
    assert "--dsn" in str(refused.value)
    assert "s3" not in f"{refused.value} {refused.value.remedy}"


def test_a_good_dsn_is_accepted() -> None:
    check_dsn("postgresql://alice:s3%2Fcret@db/storms", "--dsn")
    check_dsn("host=db password='s3 @/: cret'", "--dsn")


@given(PASSWORDS)
@example("a@b/c:d?e#f")
@example("1/2@3")
def test_a_password_never_survives_in_pairs(password: str) -> None:
    assume(password.strip("\\' ") and password not in SHOWN_WORDS)
    assert password not in redact(make_conninfo(**ROUTE, password=password))


@given(PASSWORDS)
@example("a@b/c:d?e#f")
def test_a_password_never_survives_in_a_url(password: str) -> None:
    assume(password not in SHOWN_WORDS)
    dsn = f"postgresql://alice:{quote(password, safe='')}@db.example.org:5433/storms"
    assert redact(dsn) == "postgresql://alice@db.example.org:5433/storms"
    also = f"postgresql://alice@db.example.org:5433/storms?password={quote(password, safe='')}"
    assert redact(also) == "postgresql://alice@db.example.org:5433/storms"


@given(PASSWORDS, st.sampled_from(["postgresql", "postgres"]))
@example("pass/word", "postgresql")
@example("1234/pass", "postgresql")
@example("pa/s?user=ssword", "postgresql")
@example("pa@ssword", "postgresql")
def test_no_piece_of_a_password_with_unescaped_signs_survives(password: str, scheme: str) -> None:
    shown = redact(f"{scheme}://alice:{password}@db.example.org:5433/storms")
    assert shown in (UNSHOWN, "postgresql://alice@db.example.org:5433/storms")


@given(PASSWORDS)
def test_no_piece_of_an_unquoted_password_survives_in_pairs(password: str) -> None:
    assume("=" not in password)  # `password=a user=b` names a user
    shown = redact(f"host=db.example.org password={password} user=alice")
    assert shown in (UNSHOWN, "user=alice host=db.example.org", "host=db.example.org")


@given(st.fixed_dictionaries({"user": NAMES, "host": NAMES, "dbname": NAMES}), PASSWORDS)
def test_what_is_shown_leads_to_the_same_database(route: dict[str, str], password: str) -> None:
    for dsn in (
        make_conninfo(**route, password=password),
        f"postgres://{route['user']}:{quote(password, safe='')}@{route['host']}/{route['dbname']}",
    ):
        assert conninfo_to_dict(redact(dsn)) == route
        assert conninfo_to_dict(without_password(dsn)) == route
        assert password_of(dsn) == password


def test_the_host_of_a_dsn() -> None:
    assert host_of("postgresql://a@/db?host=/run/pg") == "/run/pg"
    assert host_of("dbname=x") == ""
