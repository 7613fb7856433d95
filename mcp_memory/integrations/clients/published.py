"""The ways into clients that need no edit of a file: install links for Cursor and VS Code, the plugin of Claude Code.

`app_link` is opened by the client itself, so it may hold paths and keys of this machine. `web_link` and `badge` pass
through a web site, which sees their contents: they always name the published program, with no variables.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from mcp_memory.core.distribution import REPOSITORY, uvx_arguments
from mcp_memory.core.errors import InvalidInput
from mcp_memory.integrations.clients.programs import NAME, ClientProgram, client_named, server_entry

PLUGIN = f"{NAME}@{NAME}"
PLUGIN_COMMANDS = (
    f"claude plugin marketplace add {REPOSITORY.removeprefix('https://github.com/')}",
    f"claude plugin install {PLUGIN}",
)
COMMAND = ("uvx", *uvx_arguments(), "serve")
"""Starts the published program where uv is installed: from the repository until the package is released."""

_CURSOR_APP = "cursor://anysphere.cursor-deeplink/mcp/install?"
_CURSOR_WEB = "https://cursor.com/install-mcp?"
_VSCODE_APP = "vscode:mcp/install?"
_VSCODE_WEB = (
    "https://insiders.vscode.dev/redirect?url="  # /redirect/mcp/install answers with 400: microsoft/work-iq#150
)
_PICTURES = {
    "cursor": "https://cursor.com/deeplink/mcp-install-dark.svg",
    "vscode": "https://img.shields.io/badge/VS_Code-Install_Server-0098FF?style=flat-square",
}


def app_link(of: ClientProgram, name: str, entry: Mapping[str, Any]) -> str:
    """Return the link that has a client offer to install an entry. Raises InvalidInput for one without such links."""
    match of.name:
        case "cursor":
            config = base64.b64encode(_json(entry).encode()).decode()
            return _CURSOR_APP + urlencode({"name": name, "config": config})
        case "vscode":
            return _VSCODE_APP + quote(_json({"name": name, **entry}), safe="")
        case _:
            raise InvalidInput(
                f"{of.title} opens no install links; Cursor and VS Code do. Use: mcp-memory install {of.name}"
            )


def web_link(of: ClientProgram, name: str) -> str:
    """Return the same for the published program, as a link that web pages may hold."""
    link = app_link(of, name, server_entry(of, COMMAND, {}))
    return link.replace(_CURSOR_APP, _CURSOR_WEB) if of.name == "cursor" else _VSCODE_WEB + quote(link, safe="")


def badge(client: str, name: str = "memory") -> str:
    """Return the Markdown of a button that installs the published program."""
    of = client_named(client)
    link = web_link(of, name)
    return f"[![Install in {of.title}]({_PICTURES[of.name]})]({link})"


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))
