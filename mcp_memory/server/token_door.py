"""Lets readers of the pages at `/ui` in with the token of a client: for its spaces, with its right, until it ends."""

from __future__ import annotations

import logging
from functools import partial

from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.server import oauth
from mcp_memory.server.authentication import Credentials, InsufficientScope, Rejected, network_of, wrong_tokens
from mcp_memory.ui.sessions import Reader, TooManyKeys
from mcp_memory.ui.words import t

logger = logging.getLogger(__name__)


class TokenDoor:
    """Takes the tokens of one server, as its other requests show them (`ui.sessions.Door`)."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._wrong = wrong_tokens(credentials.memory)

    async def open(self, key: str, address: str) -> Reader | None:
        try:
            client = await self._credentials.of(key)
        except InsufficientScope:
            return None
        except oauth.Unreachable as error:
            logger.warning("a token cannot be checked: %s", error)
            raise StoreUnavailable(t("entry.unreachable")) from None
        if client is None:
            await self._count(network_of(address))
            return None
        return Reader(
            space=client.spaces[0],
            spaces=client.spaces,
            right=client.right,
            is_owner=client.is_owner,
            who=client.who,
            is_good=partial(self._credentials.is_good, client),
        )

    async def _count(self, address: str) -> None:
        try:
            await self._wrong.take(address)
        except Rejected as rejected:
            raise TooManyKeys(int(rejected.headers.get("Retry-After", "60"))) from None
