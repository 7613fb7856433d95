"""Links and buttons that install what is published: what they hold is what a client can start, and pages repeat them."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from mcp_memory.core.errors import InvalidInput
from mcp_memory.integrations.clients.programs import client_named, is_ours
from mcp_memory.integrations.clients.published import COMMAND, PLUGIN, PLUGIN_COMMANDS, REPOSITORY, badge, web_link
from scripts.make_bundle import project

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", ROOT / "plugin" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ENTRY = {"command": "uvx", "args": ["memory-pyramid", "serve"]}


def test_the_published_command_is_that_of_the_registry_and_is_known_as_ours() -> None:
    [package] = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))["packages"]
    arguments = [argument["value"] for argument in package["packageArguments"]]
    assert [*COMMAND] == [package["runtimeHint"], package["identifier"], *arguments]
    assert is_ours(ENTRY)


def test_the_button_of_cursor_installs_what_is_published() -> None:
    link = urlsplit(web_link(client_named("cursor"), "memory"))
    query = parse_qs(link.query)
    assert (link.scheme, link.netloc, link.path, query["name"]) == ("https", "cursor.com", "/install-mcp", ["memory"])
    assert json.loads(base64.b64decode(query["config"][0])) == ENTRY


def test_the_button_of_vs_code_installs_what_is_published() -> None:
    link = urlsplit(web_link(client_named("vscode"), "memory"))
    assert (link.scheme, link.netloc, link.path) == ("https", "insiders.vscode.dev", "/redirect")
    [inner] = parse_qs(link.query)["url"]
    kind, _, entry = inner.partition("?")
    assert kind == "vscode:mcp/install"
    assert json.loads(unquote(entry)) == {"name": "memory", "type": "stdio", **ENTRY}


def test_a_button_is_a_picture_with_a_link() -> None:
    for client, title in (("cursor", "Cursor"), ("vscode", "VS Code")):
        link = web_link(client_named(client), "memory")
        assert re.fullmatch(rf"\[!\[Install in {title}\]\(https://[^()\s]+\)\]\({re.escape(link)}\)", badge(client))
    with pytest.raises(InvalidInput, match="opens no install links"):
        badge("codex")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_show_the_buttons_as_they_are(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = re.findall(
        r"(?:https://(?:cursor\.com/[^\s)]*install-mcp\?|[^\s)]*vscode\.dev/redirect)|cursor:|vscode:)[^\s)\"]+", text
    )
    assert set(links) <= {web_link(client_named(client), "memory") for client in ("cursor", "vscode")}


def test_the_plugin_is_the_one_that_the_marketplace_of_the_repository_lists() -> None:
    assert project()["urls"]["Repository"] == REPOSITORY
    assert PLUGIN_COMMANDS == (
        "claude plugin marketplace add mcp-memory/mcp-memory",
        "claude plugin install mcp-memory@mcp-memory",
    )
    listed = json.loads((ROOT / ".claude-plugin" / "marketplace.json").read_text(encoding="utf-8"))
    assert f"{listed['plugins'][0]['name']}@{listed['name']}" == PLUGIN
