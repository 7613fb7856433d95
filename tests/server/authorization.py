"""A small authorization server on loopback: metadata, keys, and tokens for clients with a secret (RFC 8414, 6749)."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

SECRET = "a client's secret"


@dataclass
class AuthorizationServer:
    issuer: str
    keys: dict[str, tuple[str, Any]] = field(default_factory=dict[str, "tuple[str, Any]"])
    """Algorithm and private key by key id; the last one signs."""
    asked: Counter[str] = field(default_factory=Counter[str])
    allowed: dict[str, str] = field(default_factory=dict[str, str])
    """The most that a client is given, where that is not what it asks for."""
    is_down: bool = False

    def rotate(self, kid: str, algorithm: str = "ES256") -> None:
        self.keys[kid] = (
            algorithm,
            ec.generate_private_key(ec.SECP256R1())
            if algorithm == "ES256"
            else (rsa.generate_private_key(public_exponent=65537, key_size=2048)),
        )

    def token(self, audience: str, *, key: Any = None, algorithm: str = "", header: Any = None, **claims: Any) -> str:
        """Return a token as the server would give it to `anna`, but for what is said here; None leaves a claim out."""
        kid, (own_algorithm, own_key) = [*self.keys.items()][-1]
        said = {
            "iss": self.issuer,
            "aud": audience,
            "sub": "anna",
            "client_id": "laptop",
            "scope": "memory:write",
            "iat": int(time.time()),
            "exp": int(time.time()) + 300,
            **claims,
        }
        return jwt.encode(
            {name: value for name, value in said.items() if value is not None},
            own_key if key is None else key,
            algorithm or own_algorithm,
            headers={"kid": kid, **(header or {})},
        )

    def answer(self, path: str, posted: str, authorization: str) -> tuple[int, Any]:
        self.asked[path] += 1
        match path:
            case _ if self.is_down:
                return 500, {}
            case "/.well-known/oauth-authorization-server":
                return 200, {
                    "issuer": self.issuer,
                    "authorization_endpoint": f"{self.issuer}/authorize",
                    "token_endpoint": f"{self.issuer}/token",
                    "jwks_uri": f"{self.issuer}/keys",
                    "response_types_supported": ["code"],
                    "grant_types_supported": ["client_credentials"],
                    "token_endpoint_auth_methods_supported": ["client_secret_basic"],
                }
            case "/keys":
                return 200, {"keys": [self._public(kid, *key) for kid, key in self.keys.items()]}
            case "/token":
                asked = parse_qs(posted)
                name, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
                if secret.replace("%27", "'").replace("%20", " ") != SECRET:
                    return 401, {"error": "invalid_client"}
                token = self.token(
                    asked["resource"][0], sub=name, client_id=name, scope=self.allowed.get(name, asked["scope"][0])
                )
                return 200, {"access_token": token, "token_type": "Bearer", "expires_in": 300}
            case _:
                return 404, {}

    def _public(self, kid: str, algorithm: str, key: Any) -> dict[str, Any]:
        of = jwt.get_algorithm_by_name(algorithm)
        return {**json.loads(of.to_jwk(key.public_key())), "kid": kid, "use": "sig", "alg": algorithm}


@contextmanager
def authorizing() -> Generator[AuthorizationServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            posted = self.rfile.read(length).decode()
            status, answer = server.answer(self.path, posted, self.headers.get("Authorization") or "")
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - the name that http.server calls

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its own name
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server = AuthorizationServer(f"http://127.0.0.1:{http.server_port}")
        server.rotate("first")
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
