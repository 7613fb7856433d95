"""Which client a bearer token is of: the one of the setting, one that the store keeps, or an OAuth access token.

As long as there is none of the three, and only this machine can reach the server, whoever asks is the owner. Tokens
are never deleted, so a server that once asked for them asks for ever: who was shut out is not let in again by that.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

import anyio

from mcp_memory.server.access import oauth
from mcp_memory.store.access import Right

if TYPE_CHECKING:
    from mcp_memory.core.config import Settings
    from mcp_memory.service.memory import Memory

__all__ = ["Client", "Credentials", "TooFew"]

_LOOKED_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Who asks. `spaces` are those it may choose from, the first where it names none."""

    who: str
    spaces: tuple[str, ...]
    right: Right
    is_owner: bool = False
    token: str | None = None
    """The id of its token in the store."""
    until: float | None = None
    """When its OAuth token ends, in seconds since 1970."""


class TooFew(Exception):
    """An OAuth token is genuine, and has no scope or no space of ours."""


class Credentials:
    """The tokens of one server. Raises McpMemoryError where the store is needed and cannot be opened."""

    def __init__(self, settings: Settings, memory: Callable[[], Awaitable[Memory]], *, reachable: bool) -> None:
        """`reachable`: other machines, or others through them, can reach the server. Raises InvalidInput."""
        self._setting = settings.token
        self._claim = settings.oauth_space_claim
        self._owner = Client(who="", spaces=(settings.space,), right="admin", is_owner=True)
        self._memory = memory
        self.issuer = oauth.issuer_of(settings)
        self._needed = reachable or bool(self._setting) or self.issuer is not None
        self._looked = float("-inf")

    async def owner(self) -> Client | None:
        """Return the owner, where nobody needs a token."""
        if not self._needed and anyio.current_time() - self._looked > _LOOKED_S:
            self._needed = bool(await (await self._memory()).tokens())
            self._looked = anyio.current_time()
        return None if self._needed else self._owner

    async def of(self, shown: str) -> Client | None:
        """Return whose token this is, None where it is not good.

        Raises TooFew, and oauth.Unreachable where it cannot be told.
        """
        if self._setting and hmac.compare_digest(shown.encode("utf-8", "replace"), self._setting.encode()):
            return self._owner
        token = await (await self._memory()).token_shown(shown) if shown.startswith("mcm_") else None
        if token is not None:
            return Client(who=f"token {token.id}", spaces=token.spaces, right=token.right, token=token.id)
        if self.issuer is None or shown.count(".") != 2:
            return None
        access = await self.issuer.verify_token(shown)
        if access is None:
            return None
        right, spaces = oauth.right_of(access), oauth.spaces_of(access, self._claim)
        if right is None or not spaces:
            raise TooFew
        user = f"{access.client_id}\0{access.subject}"
        who = f"oauth {sha256(user.encode()).hexdigest()[:20]}"
        return Client(who=who, spaces=spaces, right=right, until=access.expires_at)

    async def is_good(self, client: Client) -> bool:
        """Tell whether a client that was let in is still to be answered."""
        if client.until is not None:
            return time.time() < client.until
        if client.token is not None:
            return await (await self._memory()).is_good(client.token)
        return bool(self._setting) or await self.owner() is not None
