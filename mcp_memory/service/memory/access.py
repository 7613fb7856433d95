"""Tokens of HTTP clients: made, listed, revoked, and told from forgeries.

A token reads `mcm_<id>_<secret>`. The id finds its row; of the secret only the hash is kept and compared, in constant
time, with some hash even where there is no such row.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256

from mcp_memory.core.errors import InvalidInput, NotFound, StoreUnavailable
from mcp_memory.core.text import one_line, safe_name
from mcp_memory.service.memory.verbs import Verbs, in_thread
from mcp_memory.store.access import RIGHTS, Right, Token

__all__ = ["PREFIX", "Access"]

PREFIX = "mcm"
_NOBODY = sha256(b"").digest()


class Access(Verbs):
    """Who may ask over HTTP. Tokens belong to the home: these verbs are the same in every space of it."""

    @in_thread
    def create_token(
        self, name: str, *, spaces: Sequence[str] = (), right: Right = "write", expires: timedelta | None = None
    ) -> tuple[Token, str]:
        """Make a token and return it with the text that its client shows, which is nowhere kept.

        It opens `spaces` (left out, this one). Raises InvalidInput for a name that is taken or a space that cannot be.
        """
        named = one_line(name, 80)
        if not named:
            raise InvalidInput("A token needs a name, such as that of the machine or program that will show it.")
        if len(name.strip()) > len(named):
            raise InvalidInput(f"The name of a token can have 80 characters on one line, and this has {len(name):,}.")
        if right not in RIGHTS:
            raise InvalidInput(f"right {right!r} is unknown. Allowed: {', '.join(RIGHTS)}.")
        if expires is not None and expires <= timedelta():
            raise InvalidInput(
                "A token has to last for some time. Leave its end out, and it lasts until it is revoked."
            )
        opened = tuple(dict.fromkeys(safe_name(space, what="space") for space in spaces or [self.space]))
        id, secret, now = secrets.token_hex(4), secrets.token_urlsafe(32), self._parts.now()
        token = Token(
            id=id,
            name=named,
            spaces=opened,
            right=right,
            at=now.replace(microsecond=0),
            until=None if expires is None else _after(now.replace(microsecond=0), expires),
            hash=_hash(secret),
        )
        self._parts.store.add_token(token)
        return token, f"{PREFIX}_{id}_{secret}"

    @in_thread
    def tokens(self) -> list[Token]:
        """Return all tokens that ever were, the oldest first."""
        return self._parts.store.tokens()

    @in_thread
    def revoke_token(self, which: str) -> Token:
        """Revoke the token of this id or name, in every process at once. NotFound where there is none to revoke."""
        store = self._parts.store
        live = [token for token in store.tokens() if token.revoked_at is None]
        found = next((token for token in live if which in (token.id, token.name)), None)
        if found is None:
            known = ", ".join(token.name for token in live)
            raise NotFound(
                f"There is no token {one_line(which, 60)!r} to revoke. " + (f"Tokens: {known}." if known else "")
            )
        store.revoke_token(found.id, now=self._parts.now())
        return found

    @in_thread
    def token_shown(self, text: str) -> Token | None:
        """Return the token that a client shows; None where it is wrong, revoked, or its time is over."""
        prefix, _, rest = text.partition("_")
        id, _, secret = rest.partition("_")
        token = self._parts.store.token(id) if prefix == PREFIX and text.isascii() else None
        is_right = hmac.compare_digest(_hash(secret), _NOBODY if token is None else token.hash)
        now = self._parts.now()
        if token is None or not is_right or not token.is_good(now):
            return None
        try:
            self._parts.store.note_token_used(token.id, now=now)
        except StoreUnavailable:
            pass  # a home that can only be read is read with its tokens all the same
        return token

    @in_thread
    def is_good(self, id: str) -> bool:
        """Tell whether a token that was shown before still opens anything."""
        token = self._parts.store.token(id)
        return token is not None and token.is_good(self._parts.now())


def _after(now: datetime, span: timedelta) -> datetime:
    try:
        return now + span
    except OverflowError:
        raise InvalidInput("No token lasts that long. Leave its end out, and it lasts until it is revoked.") from None


def _hash(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()
