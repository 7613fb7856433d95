"""OAuth access tokens, given by a real authorization server on loopback and found by the SDK's own client."""

from __future__ import annotations

import base64
import hmac
import socket
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from mcp import Client
from mcp.client.auth import TokenStorage
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from mcp_memory.core.config import Settings, load_settings
from mcp_memory.core.errors import InvalidInput
from mcp_memory.server import oauth
from mcp_memory.server.authentication import ApiClient as Asking
from mcp_memory.server.authentication import Credentials
from tests.server.answers import HEADERS, INITIALIZE, WAIT, answer_of, error_of
from tests.server.authorization import SECRET, AuthorizationServer, authorizing
from tests.server.served import bearer, served


@pytest.fixture(scope="module")
def issuer() -> Iterator[AuthorizationServer]:
    with authorizing() as server:
        yield server


@asynccontextmanager
async def guarded(home: Path, issuer: AuthorizationServer, **more: Any) -> AsyncGenerator[str]:
    """Serve a memory that takes the issuer's tokens, and yield its address, which is their audience too."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    given = {"oauth_issuer": issuer.issuer, "oauth_audience": url, "token": "s3cret", **more}
    async with served(load_settings({}, home=home, embedder="none", **given), listener=listener):
        yield url


@pytest.fixture(scope="module")
async def url(tmp_path_factory: pytest.TempPathFactory, issuer: AuthorizationServer) -> AsyncIterator[str]:
    async with guarded(tmp_path_factory.mktemp("oauth") / "home", issuer) as url:
        yield url


async def knock(url: str, token: str | None) -> httpx2.Response:
    async with bearer(token) as http:
        return await http.post(url, json=INITIALIZE, headers=HEADERS)


class Storage(TokenStorage):
    tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None: ...


@asynccontextmanager
async def as_user(url: str, issuer: AuthorizationServer, name: str) -> AsyncGenerator[Client]:
    """Connect as a client that knows the address, its issuer and its own secret."""
    auth = ClientCredentialsOAuthProvider(url, Storage(), name, SECRET, issuer=issuer.issuer)
    async with (
        httpx2.AsyncClient(auth=auth, timeout=WAIT) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


async def test_a_client_finds_its_way_from_the_address_alone_and_each_user_has_a_space_of_their_own(
    url: str, issuer: AuthorizationServer
) -> None:
    async with as_user(url, issuer, "anna") as anna, as_user(url, issuer, "ben") as ben:
        answer_of(await anna.call_tool("remember", {"text": "Anna's boat is named Puffin."}))
        for client, expected in ((anna, 1), (ben, 0)):
            found = answer_of(await client.call_tool("memory_search", {"query": "boat named Puffin"}))
            assert len(found["atoms"]) == expected
        assert "needs the right admin" in error_of(await ben.call_tool("forget", {"ids": ["a1"]}))
    issuer.allowed["carl"] = "memory:read"
    async with as_user(url, issuer, "carl") as carl:
        assert "needs the right write" in error_of(await carl.call_tool("remember", {"text": "x"}))


async def test_who_has_no_token_is_told_where_to_get_one(url: str, issuer: AuthorizationServer) -> None:
    refused = await knock(url, None)
    where = url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")
    assert refused.status_code == 401
    assert refused.headers["WWW-Authenticate"] == (
        f'Bearer realm="mcp-memory", resource_metadata="{where}", scope="memory:read memory:write"'
    )
    async with bearer(None) as http:
        told = (await http.get(where)).json()
    assert (told["resource"], told["authorization_servers"], told["scopes_supported"]) == (
        url,
        [issuer.issuer],
        ["memory:read", "memory:write", "memory:admin"],
    )


FORGED: dict[str, Any] = {
    "for another server": {"audience": "https://other.example/mcp"},
    "for nobody": {"aud": None},
    "of another issuer": {"iss": "https://other.example"},
    "of no issuer": {"iss": None},
    "over": {"exp": 1_000_000_000},
    "without an end": {"exp": None},
    "not yet": {"nbf": 4_000_000_000},
    "without a user": {"sub": None},
    "of an empty user": {"sub": ""},
    "signed with another's key": {"key": ec.generate_private_key(ec.SECP256R1())},
    "of a key that is not there": {"header": {"kid": "nobody's"}},
    "of a key id that is no text": {"header": {"kid": "\0"}},
    "not signed": {"key": "", "algorithm": "none"},
}


@pytest.mark.parametrize("how", FORGED)
async def test_a_forged_token_opens_nothing(url: str, issuer: AuthorizationServer, how: str) -> None:
    made = {"audience": url, **FORGED[how]}
    refused = await knock(url, issuer.token(made.pop("audience"), **made))
    assert (refused.status_code, 'error="invalid_token"' in refused.headers["WWW-Authenticate"]) == (401, True)


def in_url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


async def test_the_public_key_is_no_secret_to_sign_with(url: str, issuer: AuthorizationServer) -> None:
    _, key = issuer.keys["first"]
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    header, claims, _ = issuer.token(url).split(".")
    signed = in_url(b'{"alg":"HS256","typ":"JWT","kid":"first"}') + f".{claims}"
    forged = f"{signed}.{in_url(hmac.digest(public, signed.encode(), 'sha256'))}"
    assert (await knock(url, forged)).status_code == 401
    deep = in_url(b'{"alg":' + b"[" * 8_000 + b"]" * 8_000 + b"}")
    for odd in ("a.b.c", f"{deep}.e30.YQ", "..", f"{header}.{claims}.", f"{header}..x", "é.é.é"):
        async with bearer(None) as http:
            answer = await http.post(url, headers={b"Authorization": b"Bearer " + odd.encode("latin-1")})
        assert answer.status_code in (401, 429)  # by now this address has guessed a lot


async def test_the_scopes_of_a_token_are_its_right(home: Path, issuer: AuthorizationServer) -> None:
    async with guarded(home, issuer) as url:
        told: list[tuple[dict[str, Any], set[str]]] = [
            ({"scope": "openid memory:read"}, {"read"}),
            ({"scope": None, "scp": ["memory:write"]}, {"read", "write"}),
            ({"scope": "memory:admin"}, {"read", "write", "admin"}),
        ]
        for said, expected in told:
            async with (
                bearer(issuer.token(url, **said)) as http,
                Client(streamable_http_client(url, http_client=http)) as client,
            ):
                names = {tool.name for tool in (await client.list_tools()).tools}
            assert {
                right
                for right, tool in (("read", "recall"), ("write", "remember"), ("admin", "forget"))
                if tool in names
            } == expected
        refused = await knock(url, issuer.token(url, scope="openid profile"))
        assert refused.status_code == 403
        assert 'error="insufficient_scope", scope="memory:read"' in refused.headers["WWW-Authenticate"]


async def test_a_claim_may_name_the_spaces(home: Path, issuer: AuthorizationServer) -> None:
    async with guarded(home, issuer, oauth_space_claim="teams") as url:
        both = issuer.token(url, teams=["crew", "office"])
        for address, status in ((url, 200), (f"{url}?space=office", 200), (f"{url}?space=bridge", 403)):
            assert (await knock(address, both)).status_code == status
        for teams in (None, [], "../up", [{"a": 1}, "/"], 7):
            assert (await knock(url, issuer.token(url, teams=teams))).status_code == 403


async def test_new_keys_are_fetched_when_a_token_names_one_and_not_in_haste(
    home: Path, issuer: AuthorizationServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded(home, issuer) as url:
        assert (await knock(url, issuer.token(url))).status_code == 200
        before = issuer.asked["/keys"]
        for _ in range(3):
            assert (await knock(url, issuer.token(url, header={"kid": "nobody's"}))).status_code == 401
        assert issuer.asked["/keys"] == before
        issuer.rotate("second", "RS256")
        monkeypatch.setattr(oauth, "_MIN_FETCH_INTERVAL_S", 0.0)
        assert (await knock(url, issuer.token(url))).status_code == 200
        assert issuer.asked["/keys"] == before + 1


async def test_nobody_with_a_good_token_waits_for_keys_that_others_name(
    home: Path, issuer: AuthorizationServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    verifier = oauth.configured_issuer(settings(home, oauth_issuer=issuer.issuer))
    assert verifier is not None
    good = issuer.token("https://memory.example/mcp")
    assert await verifier.verify_token(good) is not None
    fetching, fetched = anyio.Event(), anyio.Event()

    async def slow() -> dict[Any, Any]:
        fetching.set()
        await fetched.wait()
        return {}

    monkeypatch.setattr(oauth, "_MIN_FETCH_INTERVAL_S", 0.0)
    monkeypatch.setattr(verifier, "_fetch_keys", slow)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(verifier.verify_token, issuer.token("x", header={"kid": "nobody's"}))
            await fetching.wait()
            assert await verifier.verify_token(good) is not None
            fetched.set()


async def test_where_the_keys_cannot_be_had_a_client_is_asked_to_wait_and_the_owner_comes_in(
    home: Path, issuer: AuthorizationServer
) -> None:
    issuer.is_down = True
    try:
        async with guarded(home, issuer) as url:
            waiting = await knock(url, issuer.token(url))
            assert (waiting.status_code, waiting.headers["Retry-After"]) == (503, "10")
            assert (await knock(url, "s3cret")).status_code == 200
            asked = issuer.asked.total()
            assert (await knock(url, issuer.token(url))).status_code == 503
            assert issuer.asked.total() == asked  # nor is the issuer asked again by every token that comes
    finally:
        issuer.is_down = False


async def test_who_came_in_with_a_token_stays_no_longer_than_it_lasts(home: Path) -> None:
    async def never() -> Any:
        raise AssertionError

    credentials = Credentials(settings(home), never, reachable=False)
    for until, expected in ((time.time() + 60, True), (time.time() - 1, False)):
        asking = Asking(who="oauth x", spaces=("x",), right="read", until=until)
        assert await credentials.is_valid(asking) == expected


def settings(home: Path, **more: Any) -> Settings:
    given = {"oauth_issuer": "https://id.example", "oauth_audience": "https://memory.example/mcp", **more}
    return load_settings({}, home=home, embedder="none", **given)


@pytest.mark.parametrize(
    "wrong",
    [
        {"oauth_audience": None},
        {"oauth_issuer": None},
        {"oauth_issuer": "http://id.example"},
        {"oauth_issuer": "id.example"},
        {"oauth_audience": "https://memory.example/mcp#x"},
        {"oauth_issuer": "https://a:b@id.example"},
    ],
)
def test_settings_that_cannot_be_safe_are_refused(home: Path, wrong: dict[str, Any]) -> None:
    given = {"oauth_issuer": "https://id.example", "oauth_audience": "https://memory.example/mcp", **wrong}
    chosen = load_settings({}, home=home, **{name: value for name, value in given.items() if value})
    with pytest.raises(InvalidInput, match=r"oauth_(issuer|audience)"):
        oauth.configured_issuer(chosen)
