"""The server of a memory on another machine: its address, its token, and the folder for what this machine notes of it.

A token is sent to the server that it was given for and to no other, so its file is in a folder named after the address.
Standard library only, because hooks import this module.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from mcp_memory.core.config_file import PREFIX
from mcp_memory.core.errors import InvalidInput, ServerRefused
from mcp_memory.core.paths import absolute_path
from mcp_memory.core.private_files import make_folder, replace_private
from mcp_memory.core.regular_files import read_regular

VERB_PREFIX = "verb."
"""The names of tools that stand for verbs begin with this (`service.remote`)."""
SPACE_HEADER = "mcp-memory-space"
SPACE_PARAMETER, PERSONAL_PARAMETER = "space", "personal_space"
"""The parameters of an address that name the space, and the space of the personal memory beside it."""

_EXAMPLE = "https://memory.example.com/mcp"
_LOOPBACK = re.compile(r"localhost|127(?:\.\d{1,3}){3}|::1")
_TOKEN = re.compile(r"[\x21-\x7e]+")
_MAX_TOKEN = 10_000
_ADDRESS_FILE = "address"
_UNUSABLE = "the token for the server cannot be used"
_TRUE = ("1", "true", "t", "yes", "y", "on")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """An address of a server, in one spelling."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}"

    @property
    def needs_permission(self) -> bool:
        """Whether the token would travel in the clear to another machine."""
        return self.scheme == "http" and not _LOOPBACK.fullmatch(self.host)

    def folder(self, home: Path) -> Path:
        """Return the folder in a home for what is noted about this server."""
        return home / "servers" / _digest(self.url)

    def token_file(self, home: Path) -> Path:
        """Return the file that `install --server` writes the token to."""
        return self.folder(home) / "token"


_PORTS = {"http": 80, "https": 443}


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def parse_address(text: str, *, allow_http: bool = False) -> ServerAddress:
    """Parse the address of a server; without a path it is `/mcp`.

    Raises InvalidInput for another text, and for `http://` to another machine unless `allow_http`: a token that is sent
    in the clear can be read on the way.
    """
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError:
        raise InvalidInput(f"{text!r} is no address of a server. Write it as {_EXAMPLE}.") from None
    if parts.scheme not in _PORTS or not parts.hostname or parts.query or parts.fragment or not text.isascii():
        raise InvalidInput(f"{text!r} is no address of a server. Write it as {_EXAMPLE}.")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(
            "The address of a server has no user and password. Give the token by MCP_MEMORY_SERVER_TOKEN, or by a file."
        )
    path = parts.path if parts.path.strip("/") else "/mcp"
    address = ServerAddress(scheme=parts.scheme, host=parts.hostname, port=port or _PORTS[parts.scheme], path=path)
    if address.needs_permission and not allow_http:
        raise InvalidInput(
            f"{text!r} would send the token in the clear. Use https://, or set MCP_MEMORY_SERVER_HTTP=true if the "
            "network encrypts it, such as a VPN."
        )
    return address


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAccess:
    """How this machine reaches a server: its address, the token or its file, and the spaces, None for the token's."""

    address: ServerAddress
    home: Path
    given_token: str | None = None
    given_file: str | None = None
    space: str | None = None
    personal_space: str | None = None

    @property
    def records_folder(self) -> Path:
        """The folder for what is noted about the space: how far this machine's logs and files were read into it."""
        return self.address.folder(self.home) / _digest(self.space or "")

    @property
    def token_file(self) -> Path:
        if self.given_file:
            return absolute_path(self.given_file, "MCP_MEMORY_SERVER_TOKEN_FILE")
        return self.address.token_file(self.home)

    @property
    def has_token(self) -> bool:
        return bool(self.given_token) or self.token_file.exists()

    @property
    def target(self) -> str:
        """The path of requests, with the spaces."""
        spaces = {SPACE_PARAMETER: self.space, PERSONAL_PARAMETER: self.personal_space}
        query = urlencode({name: space for name, space in spaces.items() if space})
        return f"{self.address.path}?{query}" if query else self.address.path

    def headers(self) -> dict[str, str]:
        """Return the header with the token. Raises ServerRefused as `token` does."""
        return {"Authorization": f"Bearer {self.token()}"}

    def token(self) -> str:
        """Return the token, read again at each call. Raises ServerRefused if there is none, or if it cannot be read."""
        file = self.token_file
        try:
            token = self.given_token or read_regular(file, _MAX_TOKEN).decode("ascii", "replace").strip()
        except FileNotFoundError:
            text = (
                f"There is no token for {self.address.url}. Set MCP_MEMORY_SERVER_TOKEN to the one that you were "
                f"given, or put it into {file}. At a terminal `mcp-memory install` asks for it."
            )
            raise ServerRefused(text, "there is no token for the server") from None
        except OSError as error:
            raise ServerRefused(f"The token in {file} cannot be read: {error.strerror}.", _UNUSABLE) from None
        if not _TOKEN.fullmatch(token):
            where = "MCP_MEMORY_SERVER_TOKEN" if self.given_token else file
            raise ServerRefused(f"{where} does not contain a token: one line of letters, digits and signs.", _UNUSABLE)
        if not self.given_token and os.name != "nt" and file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            text = f"Other users of this machine can read {file}. Make it yours alone: chmod 600 {file}"
            raise ServerRefused(text, _UNUSABLE)
        return token

    def save_token(self, token: str) -> None:
        """Write the token and the address to files, for this user alone. Raises OSError."""
        make_folder(self.token_file.parent)
        replace_private(self.token_file.with_name(_ADDRESS_FILE), self.address.url.encode() + b"\n")
        replace_private(self.token_file, token.encode() + b"\n")


def known_servers(home: Path) -> list[str]:
    """Return the addresses of the servers for which `install --server` has kept a token in a home."""
    addresses: list[str] = []
    for file in sorted(home.glob(f"servers/*/{_ADDRESS_FILE}")):
        with suppress(OSError, ValueError, InvalidInput):
            addresses.append(parse_address(read_regular(file, _MAX_TOKEN).decode("ascii"), allow_http=True).url)
    return addresses


def access_of(
    home: Path, config: Mapping[str, Any], *, space: str | None = None, environ: Mapping[str, str] | None = None
) -> ServerAccess | None:
    """Return the access of the environment and of the values of `config.toml`; None without a server.

    For hooks, which have no time to validate all settings. Raises InvalidInput for a wrong address.
    """
    environ = os.environ if environ is None else environ

    def value(name: str) -> str | None:
        return environ.get(f"{PREFIX}{name.upper()}") or (str(config[name]) if config.get(name) else None)

    server, personal = value("server"), value("personal_space")
    if server is None:
        return None
    return ServerAccess(
        address=parse_address(server, allow_http=(value("server_http") or "").lower() in _TRUE),
        home=home,
        given_token=value("server_token"),
        given_file=value("server_token_file"),
        space=space or value("space"),
        personal_space=None if personal == "none" else personal,
    )
