"""Hook tokens that must not be shown: a digest in the token's place, which still tells two tokens apart."""

from __future__ import annotations

from stormctl.history.payload import digest_value

#: What stands before the digest of a token that was not kept.
SEALED = "digest:"


def is_sealed(token: str) -> bool:
    """Whether it is the digest of a token and not the token."""
    return token.startswith(SEALED)


def seal(token: str) -> str:
    """What is kept of a token: its digest. One that is sealed stays as it is."""
    return token if is_sealed(token) else f"{SEALED}{digest_value(token)}"


def token_digest(token: str) -> str:
    """The digest of a token, sealed or not."""
    return seal(token).removeprefix(SEALED)


def same_token(one: str, other: str) -> bool:
    """Whether two tokens are the same as far as they are known: where one of them is sealed, digests are compared."""
    return one == other or ((is_sealed(one) or is_sealed(other)) and seal(one) == seal(other))
