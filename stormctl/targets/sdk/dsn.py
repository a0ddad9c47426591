"""A connection string in the one form that Node's client reads: a URL."""

from __future__ import annotations

from urllib.parse import quote, urlencode

#: what a URL has a place of its own for
_PLACED = {"user", "password", "dbname"}


def node_url(dsn: str) -> str:
    """The same server as a URL. A unix socket is named in the query, where libpq and node-postgres both look for it."""
    from psycopg.conninfo import conninfo_to_dict

    parts = {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value is not None}
    user = quote(parts.get("user", ""), safe="")
    if "password" in parts:
        user += f":{quote(parts['password'], safe='')}"
    host, port = parts.pop("host", ""), parts.pop("port", "")
    rest = {name: value for name, value in parts.items() if name not in _PLACED}
    if host.startswith("/"):
        rest["host"], host = host, ""
        if port:
            rest["port"], port = port, ""
    where = f"[{host}]" if ":" in host else host
    at = f"{user}@" if user else ""
    query = f"?{urlencode(rest)}" if rest else ""
    return f"postgresql://{at}{where}{f':{port}' if port else ''}/{quote(parts.get('dbname', ''), safe='')}{query}"
