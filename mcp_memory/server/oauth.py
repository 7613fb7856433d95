"""OAuth: validates access tokens of an authorization server; this server is the resource server (RFC 9728, 9068).

A token must be a current JWT signed by a published key of the issuer, for our `audience`, with a subject. The
keys are found through the issuer's metadata (RFC 8414, or OpenID's), fetched when needed, cached for an hour, and
fetched again when a token names an unknown key, at most every ten seconds. PyJWT's own client is not used: it has no
such limit (forged key ids would make it fetch at each request), no size limit, and no fallback to the last known keys.

The issuer is trusted for a token's scopes and, if a claim is configured for it, its spaces.
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
from mcp_memory.core.rights import OF_SPACES, Right
from mcp_memory.core.text import safe_name
from mcp_memory.server.authorization import is_loopback

if TYPE_CHECKING:
    from jwt import PyJWK
    from starlette.routing import Route

    from mcp_memory.core.config import Settings


logger = logging.getLogger(__name__)

SCOPES: dict[Right, str] = {right: f"memory:{right}" for right in OF_SPACES}

# Signatures that prove the issuer. Never a shared secret: whoever can verify with it could also sign.
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
_LEEWAY_S = 30
_KEY_CACHE_SECONDS = 3600.0
_MIN_FETCH_INTERVAL_S = 10.0
_TIMEOUT_S = 5.0
_MAX_BYTES = 2**20


class Unreachable(Exception):
    """The keys of the authorization server cannot be fetched."""


def configured_issuer(settings: Settings) -> Issuer | None:
    """Return the configured issuer; None if none is set.

    Raises InvalidInput if only one of its two settings is given, or an address is not https.
    """
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
    """An authorization server. One instance per process, safe for concurrent tasks of its event loop."""

    issuer: str
    audience: str
    _keys: dict[str | None, PyJWK] = field(default_factory=dict[str | None, "PyJWK"], repr=False)
    _fetched_at: float = float("-inf")
    _attempted_at: float = float("-inf")
    _failure: str | None = None
    """Why the last attempt to fetch the keys failed."""
    _lock: anyio.Lock = field(default_factory=anyio.Lock, repr=False)

    async def verify_token(self, token: str) -> dict[str, Any] | None:
        """Return the claims of a token; None for an invalid token. Raises Unreachable if it cannot be checked."""
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
        key = self._cached_key(kid)
        if key is not None and anyio.current_time() - self._fetched_at <= _KEY_CACHE_SECONDS:
            return key  # a valid token does not wait for keys that other tokens need
        async with self._lock:
            await self._refresh_keys(kid)
            key = self._cached_key(kid)
            if key is None and self._failure is not None:
                raise Unreachable(self._failure)
            return key

    async def _refresh_keys(self, kid: object) -> None:
        """Fetch the keys if they are old or do not include `kid`, at most every ten seconds."""
        now = anyio.current_time()
        is_current = now - self._fetched_at <= _KEY_CACHE_SECONDS and self._cached_key(kid) is not None
        if is_current or now - self._attempted_at <= _MIN_FETCH_INTERVAL_S:
            return
        try:
            self._keys = await self._fetch_keys()
            self._fetched_at, self._failure = anyio.current_time(), None
        except Unreachable as error:
            self._failure = str(error)
            logger.warning("the keys of an issuer could not be fetched; the last known keys are used: %s", error)
        self._attempted_at = anyio.current_time()

    def _cached_key(self, kid: object) -> PyJWK | None:
        if kid is None:  # a token may leave it out if the issuer has a single key
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(kid) if isinstance(kid, str) else None

    async def _fetch_keys(self) -> dict[str | None, PyJWK]:
        """Return the issuer's keys by their ids. Raises Unreachable if they cannot be fetched."""
        import httpx2
        import jwt

        async with httpx2.AsyncClient(timeout=_TIMEOUT_S) as client:
            try:
                metadata = await self._metadata(client)
                where = str(metadata.get("jwks_uri"))
                if not _is_safe(where):
                    raise Unreachable(f"{self.issuer} has no https address for its keys")
                keys = jwt.PyJWKSet.from_dict(await _fetch_json(client, where)).keys
            except (httpx2.HTTPError, ValueError, jwt.PyJWTError) as error:
                raise Unreachable(f"the keys of {self.issuer} cannot be fetched ({type(error).__name__})") from error
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
                metadata = await _fetch_json(client, place)
            except ValueError:
                continue
            if str(metadata.get("issuer", "")).rstrip("/") == self.issuer.rstrip("/"):
                return metadata
        raise Unreachable(f"{self.issuer} has no metadata that names it as the issuer")


async def _fetch_json(client: Any, url: str) -> dict[str, Any]:
    """Return the JSON object at an address.

    Raises ValueError for any other content, httpx2.HTTPError for a failed request.
    """
    answer = await client.get(url, headers={"Accept": "application/json"})
    if answer.status_code != 200 or len(answer.content) > _MAX_BYTES:
        raise ValueError(f"{url} answered {answer.status_code}")
    value = answer.json()
    if not isinstance(value, dict):
        raise ValueError(f"{url} is not an object")
    return cast("dict[str, Any]", value)


# --- claims -----------------------------------------------------------------------


def token_right(claims: dict[str, Any]) -> Right | None:
    """Return the highest right among the scopes of a token, None if it has none of our scopes."""
    scopes = _split_scopes(claims.get("scope")) + _split_scopes(claims.get("scp"))
    return next((right for right in reversed(OF_SPACES) if SCOPES[right] in scopes), None)


def token_user(claims: dict[str, Any]) -> str:
    """Return an identity for the user and client of a token."""
    return f"{claims.get('client_id') or claims.get('azp') or ''}\0{claims['sub']}"


def token_spaces(claims: dict[str, Any], claim: str | None) -> tuple[str, ...]:
    """Return the spaces of a token: from the configured claim, or a space for its user if no claim is configured.

    Empty if the claim is missing or contains an invalid name.
    """
    if claim is None:
        user = f"{claims.get('iss')}\0{claims['sub']}"
        return (f"user-{sha256(user.encode()).hexdigest()[:20]}",)
    value: object = claims.get(claim)
    names = [value] if isinstance(value, str) else cast("list[object]", value) if isinstance(value, list) else []
    try:
        return tuple(dict.fromkeys(safe_name(str(name), what="space") for name in names))
    except McpMemoryError:
        return ()


def _split_scopes(claim: object) -> list[str]:
    if isinstance(claim, str):
        return claim.split()
    return [str(word) for word in cast("list[object]", claim)] if isinstance(claim, list) else []


# --- metadata for clients --------------------------------------------------------------------------


def metadata_url(issuer: Issuer) -> str:
    from mcp.server.auth.routes import build_resource_metadata_url

    return str(build_resource_metadata_url(AnyHttpUrl(issuer.audience)))


def metadata_routes(issuer: Issuer) -> list[Route]:
    """Return the public routes that name the authorization server of this server (RFC 9728)."""
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
