"""DSNs: read by PostgreSQL's own parser, and shown without anything secret."""

from __future__ import annotations

from urllib.parse import quote

from stormctl.errors import UsageError

#: what stands for a DSN of which nothing can be shown safely
UNSHOWN = "(a DSN that cannot be shown)"

HOW_TO_WRITE = (
    "Write postgresql://user:password@host:5432/database, with %40 for @, %2F for / and %3A for : in the password, "
    "or host=... user=... dbname=...."
)

#: what is shown of a DSN. Everything else is left out: password, passfile, keys, options and what is yet to come.
_SHOWN = ("user", "host", "hostaddr", "port", "dbname", "service", "sslmode", "target_session_attrs")
_SCHEMES = ("postgresql://", "postgres://")


def redact(dsn: str) -> str:
    """The DSN for people, logs and files: where it leads, without password, passfile, keys and options.

    One that PostgreSQL cannot read, or that holds a password with unescaped signs, so that it reads parts of it as
    host or database, is not shown at all.
    """
    found = None if _mixes_up(dsn) else _parse(dsn)
    if found is None:
        return UNSHOWN
    kept = {name: found[name] for name in _SHOWN if found.get(name)}
    if not all(part.isdigit() for part in kept.get("port", "0").split(",") if part):
        return UNSHOWN
    if any(sign in kept.get(name, "") for name in ("host", "dbname") for sign in ("@", "=", "://")):
        return UNSHOWN
    return _as_url(kept) if dsn.startswith(_SCHEMES) else _as_pairs(kept)


def check_dsn(dsn: str, origin: str) -> None:
    """UsageError when that cannot be a DSN. ``origin`` says where it came from; the DSN itself is not repeated."""
    if redact(dsn) == UNSHOWN:
        raise UsageError(f"what {origin} holds is not a DSN that PostgreSQL can read", remedy=HOW_TO_WRITE)


def password_of(dsn: str) -> str | None:
    """The password inside a readable DSN, to hand it on where a command line would show it."""
    found = _parse(dsn) or {}
    return found.get("password") or None


def host_of(dsn: str) -> str:
    """The host of a readable DSN: a folder where it leads to a unix socket; empty when it names none."""
    return (_parse(dsn) or {}).get("host", "")


def without_password(dsn: str) -> str:
    """The same DSN without its password: it connects where the password comes by another way."""
    from psycopg.conninfo import make_conninfo

    return make_conninfo(**{name: value for name, value in (_parse(dsn) or {}).items() if name != "password"})


def _parse(dsn: str) -> dict[str, str] | None:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        return {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value is not None}
    except (psycopg.Error, UnicodeError, ValueError):
        return None


def _mixes_up(dsn: str) -> bool:
    """Whether a URL has an @ where only an unescaped password puts one: a second, or one behind the first slash."""
    if not dsn.startswith(_SCHEMES):
        return False
    rest = dsn.partition("://")[2]
    return rest.count("@") > 1 or "@" in rest.partition("/")[2]


def _as_url(kept: dict[str, str]) -> str:
    hosts = kept.get("host", "").split(",")
    ports = kept.get("port", "").split(",")
    query = {name: kept[name] for name in kept if name not in ("user", "host", "port", "dbname")}
    if any(host.startswith(("/", "@")) for host in hosts):
        query = {name: kept[name] for name in ("host", "port") if name in kept} | query
        authority = ""
    else:
        ports = ports * len(hosts) if len(ports) == 1 else ports
        pairs = zip(hosts, [*ports, *[""] * len(hosts)], strict=False)
        authority = ",".join(
            (f"[{host}]" if ":" in host else quote(host, safe="")) + (f":{port}" if port else "")
            for host, port in pairs
        )
    user = f"{quote(kept['user'], safe='')}@" if "user" in kept else ""
    path = f"/{quote(kept['dbname'], safe='')}" if "dbname" in kept else ""
    asked = "&".join(f"{name}={quote(value, safe='/')}" for name, value in query.items())
    return f"postgresql://{user}{authority}{path}" + (f"?{asked}" if asked else "")


def _as_pairs(kept: dict[str, str]) -> str:
    from psycopg.conninfo import make_conninfo

    return make_conninfo(**kept)
