"""Links and buttons that install what is published: what they hold is what a client can start, and pages repeat them."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from mcp_memory.core.distribution import DISTRIBUTION, RELEASED, REPOSITORY, requirement, uvx_arguments
from mcp_memory.core.errors import InvalidInput
from mcp_memory.integrations.clients.programs import (
    COMMAND,
    PLUGIN,
    PLUGIN_COMMANDS,
    badge,
    client_named,
    is_ours,
    web_link,
)
from scripts.make_bundle import project

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", ROOT / "plugin" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ENTRY = {"command": "uvx", "args": ["--from", "git+https://github.com/mcp-memory/mcp-memory", "mcp-memory", "serve"]}


def test_the_published_command_comes_from_the_repository_until_the_release_and_is_known_as_ours() -> None:
    assert [*COMMAND] == [ENTRY["command"], *ENTRY["args"]]
    assert is_ours(ENTRY)
    assert uvx_arguments(released=True) == (DISTRIBUTION,)
    assert (requirement("otel"), requirement("otel", released=True)) == (
        f"{DISTRIBUTION}[otel] @ git+{REPOSITORY}",
        f"{DISTRIBUTION}[otel]",
    )


_INSTALLS = re.compile(
    r"\b(?:uvx|uv|pip|pipx|uv_?x)\b.*memory[-_]pyramid|memory[-_]pyramid.*\b(?:pypi|uvx)\b", re.IGNORECASE
)


@pytest.mark.skipif(RELEASED, reason="the name is ours")
def test_nothing_in_the_repository_fetches_the_package_by_name_before_its_release() -> None:
    """Anybody could register the name, and run there what they like."""
    files = [
        *ROOT.glob("*.*"),
        ROOT / "Dockerfile",
        ROOT / "Makefile",
        *(
            path
            for folder in (
                *("docs", "mcp_memory", "plugin", "hooks", "bundle", "deploy", "scripts"),
                *(".agents", ".claude-plugin", ".cursor-plugin", ".github"),
            )
            for path in (ROOT / folder).rglob("*")
        ),
    ]
    endings = {".md", ".json", ".toml", ".py", ".rb", ".yaml", ".yml", ".cmd", "", ".html", ".js"}
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in files
        if path.is_file() and path.suffix in endings and path.stat().st_size < 500_000 and path.name != "CHANGELOG.md"
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines()
        if _INSTALLS.search(line) and f"@ git+{REPOSITORY}" not in line
    ]
    assert found == []


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
