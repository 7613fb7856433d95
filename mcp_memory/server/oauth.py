"""OAuth: access tokens of an authorization server; this server is the resource server (RFC 9728, 9068).

A token must be a JWT signed by one of the issuer's published keys, for our `audience`, in time, with a subject. The
keys are found through the issuer's metadata (RFC 8414, or OpenID's), fetched when needed, cached for an hour, and
fetched again when a token names an unknown key, at most every ten seconds. PyJWT's own client does not do as well: it
has no such limit (forged key ids would make it fetch at each request), no limit of size, and no fallback to the last
known keys.

The issuer is trusted for a token's scopes and, where a claim is set for it, its space.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
from pydantic import AnyHttpUrl

from mcp_memory.core.errors import InvalidInput, McpMemoryError
from mcp_memory.core.rights import RIGHTS, Right
from mcp_memory.core.text import safe_name
from mcp_memory.server.authorization import is_loopback

if TYPE_CHECKING:
    from jwt import PyJWK
    from starlette.routing import Route

    from mcp_memory.core.config import Settings


logger = logging.getLogger(__name__)

SCOPES: dict[Right, str] = {right: f"memory:{right}" for right in RIGHTS}

# Signatures that prove the issuer. Never a shared secret, with which whoever checks could also sign.
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
_LEEWAY_S = 30
_KEYS_FOR_S = 3600.0
_NO_SOONER_S = 10.0
_TIMEOUT_S = 5.0
_MOST_BYTES = 2**20


class Unreachable(Exception):
    """The authorization server did not say by which keys its tokens can be checked."""


def issuer_of(settings: Settings) -> Issuer | None:
    """Return the configured issuer; None if none is set. Raises InvalidInput."""
    if settings.oauth_issuer is None and settings.oauth_audience is None:
        return None
    if settings.oauth_issuer is None or settings.oauth_audience is None:
        raise InvalidInput(
            "The settings oauth_issuer and oauth_audience go together: the address of the authorization server, and "
            "the address of this server that it writes into its tokens, such as https://memory.example.org/mcp."
        )
    for name, url in (("oauth_issuer", settings.oauth_issuer), ("oauth_audience", settings.oauth_audience)):
        if not _is_safe(url):
            raise InvalidInput(f"Setting {name!r} must be an https address (http only on this machine), not {url!r}.")
    return Issuer(settings.oauth_issuer, settings.oauth_audience)


@dataclass
class Issuer:
    """An authorization server. One a process; safe for many tasks of its loop."""

    issuer: str
    audience: str
    _keys: dict[str | None, PyJWK] = field(default_factory=dict[str | None, "PyJWK"], repr=False)
    _fetched: float = float("-inf")
    _asked: float = float("-inf")
    _trouble: str | None = None
    """Why the keys could not be had when they were asked for last."""
    _lock: anyio.Lock = field(default_factory=anyio.Lock, repr=False)

    async def verify_token(self, token: str) -> dict[str, Any] | None:
        """Return the claims of a token; None for a bad one. Raises Unreachable where it cannot be checked."""
        import jwt  # late: it brings cryptography

        try:
            header = jwt.get_unverified_header(token)
        except jwt.InvalidTokenError:
            return None
        if header.get("alg") not in _ALGORITHMS:
            return None
        key = await self._key(header.get("kid"))
        if key is None:
            return None
        try:
            return await anyio.to_thread.run_sync(self._claims, token, key)
        except jwt.InvalidTokenError as error:
            logger.info("an OAuth token was refused: %s", error)
            return None

    def _claims(self, token: str, key: PyJWK) -> dict[str, Any]:
        import jwt

        bare = self.audience.rstrip("/")
        claims = jwt.decode(
            token,
            key,
            algorithms=_ALGORITHMS,
            audience=[bare, f"{bare}/"],
            issuer=[self.issuer.rstrip("/"), f"{self.issuer.rstrip('/')}/"],
            leeway=_LEEWAY_S,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )
        if not claims["sub"]:
            raise jwt.InvalidTokenError("no subject")
        return claims

    async def _key(self, kid: object) -> PyJWK | None:
        known = self._known(kid)
        if known is not None and anyio.current_time() - self._fetched <= _KEYS_FOR_S:
            return known  # who shows a good token does not wait for keys that others ask for
        async with self._lock:
            await self._renewed(kid)
            known = self._known(kid)
            if known is None and self._trouble is not None:
                raise Unreachable(self._trouble)
            return known

    async def _renewed(self, kid: object) -> None:
        """Fetch the keys where they are old or lack this one, though not again so soon, whatever came of it."""
        now = anyio.current_time()
        if now - self._asked <= _NO_SOONER_S or (now - self._fetched <= _KEYS_FOR_S and self._known(kid) is not None):
            return
        try:
            self._keys = await self._published()
            self._fetched, self._trouble = anyio.current_time(), None
        except Unreachable as error:
            self._trouble = str(error)
            logger.warning("the keys of an issuer could not be fetched; those known last are used: %s", error)
        self._asked = anyio.current_time()

    def _known(self, kid: object) -> PyJWK | None:
        if kid is None:  # a token may leave it out where there is one key
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(kid) if isinstance(kid, str) else None

    async def _published(self) -> dict[str | None, PyJWK]:
        """Return the issuer's keys by their ids. Raises Unreachable."""
        import httpx2
        import jwt

        async with httpx2.AsyncClient(timeout=_TIMEOUT_S) as client:
            try:
                metadata = await self._metadata(client)
                where = str(metadata.get("jwks_uri"))
                if not _is_safe(where):
                    raise Unreachable(f"{self.issuer} names no https address of its keys")
                keys = jwt.PyJWKSet.from_dict(await _json(client, where)).keys
            except (httpx2.HTTPError, ValueError, jwt.PyJWTError) as error:
                raise Unreachable(f"the keys of {self.issuer} cannot be had ({type(error).__name__})") from error
        return {key.key_id: key for key in keys}

    async def _metadata(self, client: Any) -> dict[str, Any]:
        parts = urlsplit(self.issuer)
        origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        places = (
            f"{origin}/.well-known/oauth-authorization-server{path}",
            f"{origin}/.well-known/openid-configuration{path}",
            f"{origin}{path}/.well-known/openid-configuration",
        )
        for place in dict.fromkeys(places):
            try:
                found = await _json(client, place)
            except ValueError:
                continue
            if str(found.get("issuer", "")).rstrip("/") == self.issuer.rstrip("/"):
                return found
        raise Unreachable(f"{self.issuer} has no metadata that names it as the issuer")


async def _json(client: Any, url: str) -> dict[str, Any]:
    """Return the JSON object at an address. Raises ValueError for anything else, httpx2.HTTPError on the way."""
    answer = await client.get(url, headers={"Accept": "application/json"})
    if answer.status_code != 200 or len(answer.content) > _MOST_BYTES:
        raise ValueError(f"{url} answered {answer.status_code}")
    value = answer.json()
    if not isinstance(value, dict):
        raise ValueError(f"{url} is no object")
    return cast("dict[str, Any]", value)


# --- what a token is good for -----------------------------------------------------------------------


def right_of(claims: dict[str, Any]) -> Right | None:
    """Return the most that the scopes of a token allow, None where none of them is ours."""
    scopes = _words(claims.get("scope")) + _words(claims.get("scp"))
    return next((right for right in reversed(RIGHTS) if SCOPES[right] in scopes), None)


def user_of(claims: dict[str, Any]) -> str:
    """Return who shows a token: a user, by a client."""
    return f"{claims.get('client_id') or claims.get('azp') or ''}\0{claims['sub']}"


def spaces_of(claims: dict[str, Any], claim: str | None) -> tuple[str, ...]:
    """Return the spaces a token is for: those in its claim, or without one a space of its user's own.

    None, where the claim is missing or names what cannot be a space.
    """
    if claim is None:
        user = f"{claims.get('iss')}\0{claims['sub']}"
        return (f"user-{sha256(user.encode()).hexdigest()[:20]}",)
    said: object = claims.get(claim)
    names = [said] if isinstance(said, str) else cast("list[object]", said) if isinstance(said, list) else []
    try:
        return tuple(dict.fromkeys(safe_name(str(name), what="space") for name in names))
    except McpMemoryError:
        return ()


def _words(said: object) -> list[str]:
    if isinstance(said, str):
        return said.split()
    return [str(word) for word in cast("list[object]", said)] if isinstance(said, list) else []


# --- what clients are told --------------------------------------------------------------------------


def metadata_url(issuer: Issuer) -> str:
    from mcp.server.auth.routes import build_resource_metadata_url

    return str(build_resource_metadata_url(AnyHttpUrl(issuer.audience)))


def metadata_routes(issuer: Issuer) -> list[Route]:
    """Return the routes that tell anybody where tokens for this server come from (RFC 9728)."""
    from mcp.server.auth.routes import create_protected_resource_routes
    from mcp.server.auth.settings import AuthSettings

    auth = AuthSettings.model_validate(
        {
            "issuer_url": issuer.issuer,
            "resource_server_url": issuer.audience,
            "required_scopes": [*SCOPES.values()],
            "validate_token_resource": False,  # `verify_token` checks the audience itself
        }
    )
    assert auth.resource_server_url is not None
    return create_protected_resource_routes(
        auth.resource_server_url, [auth.issuer_url], auth.required_scopes, resource_name="mcp-memory"
    )


def _is_safe(url: str) -> bool:
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    if not host or parts.username or parts.fragment or parts.query:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
