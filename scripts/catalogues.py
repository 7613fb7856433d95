"""Write what the catalogues of clients and servers need, from `pyproject.toml` and the package.

    python -m scripts.catalogues                         the manifests in the repository, after a change of the version
    python -m scripts.catalogues --release DIST COMMIT   what a release adds, into DIST, where its files are

The text about the plugin is written by hand in `plugin/.claude-plugin/plugin.json`; the other manifests are made here.
Each client that runs hooks has a form of its own for them, so `hooks_of` makes a file for each. `plugin/` has neither a
`.mcp.json` nor a `hooks/hooks.json`: clients read those by default, and the form of another client misleads them.
Gemini CLI demands `hooks/hooks.json` beside its manifest.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcp_memory.core.distribution import DISTRIBUTION, RELEASED, REPOSITORY
from mcp_memory.integrations.clients.hook_entries import hooks_of
from mcp_memory.integrations.clients.programs import COMMAND, NAME
from mcp_memory.server.skills import SKILL
from scripts.make_bundle import project

ROOT = Path(__file__).resolve().parent.parent
CLAUDE_PLUGIN = ROOT / "plugin" / ".claude-plugin" / "plugin.json"
SERVER = ROOT / "server.json"
TEMPLATES = sorted((ROOT / "deploy" / "catalogues").iterdir())
_HOLE = re.compile(r"(?<!#)\{(\w+)\}")
HEADLINE = "Memory for agents, kept on your machine"
PUBLISHED = {"memory": {"command": COMMAND[0], "args": [*COMMAND[1:]]}}
"""The server as uv starts it, for Cursor: it may keep only the files of a plugin that the manifest names."""

LAUNCHERS = {
    "claude-code": "${CLAUDE_PLUGIN_ROOT}/launch",
    "codex": "${PLUGIN_ROOT}/launch",
    "copilot": "${PLUGIN_ROOT}/launch",
    "cursor": "${CURSOR_PLUGIN_ROOT}/launch",
    "gemini": "${extensionPath}/plugin/launch",
}
"""The path of `plugin/launch` in the hooks of each client."""
_VERSIONED = {"copilot", "cursor"}
"""The clients whose files of hooks name the version of their form."""


def manifests() -> dict[str, Any]:
    """Return the content of each manifest, a JSON value, by its path in the repository."""
    claude = _read(CLAUDE_PLUGIN)
    metadata = project()
    author = {"name": metadata["authors"][0]["name"]}
    plugin: dict[str, Any] = {
        "name": NAME,
        "version": metadata["version"],
        "description": claude["description"],
        "author": author,
        "homepage": REPOSITORY,
        "repository": REPOSITORY,
        "license": metadata["license"],
        "keywords": metadata["keywords"],
    }
    entry = {"name": NAME, "source": "./plugin", "description": claude["description"]}
    marketplace = {"name": NAME, "owner": author, "metadata": {"description": HEADLINE}, "plugins": [entry]}
    hooks = {client: found for client in LAUNCHERS if (found := _hooks(client))}
    named = {client: {"hooks": f"./hooks/{client}.json"} for client in hooks}
    return {
        **{f"plugin/hooks/{client}.json": content for client, content in hooks.items() if client != "gemini"},
        "hooks/hooks.json": hooks["gemini"],
        "plugin/.claude-plugin/plugin.json": {
            **claude,
            **plugin,
            "author": {**author, "url": REPOSITORY},
            **named["claude-code"],
        },
        "plugin/.cursor-plugin/plugin.json": {
            **plugin,
            "displayName": claude["displayName"],
            "logo": "icon.png",
            "category": "productivity",
            "skills": "./skills/",
            **named.get("cursor", {}),
            "mcpServers": PUBLISHED,
        },
        "plugin/.github/plugin/plugin.json": {
            **plugin,
            "skills": "./skills/",
            **named.get("copilot", {}),
            "mcpServers": {"memory": {"command": LAUNCHERS["copilot"], "args": ["serve"]}},
        },
        "plugin/.codex-plugin/plugin.json": {
            **plugin,
            "skills": "./skills/",
            **named["codex"],
            # Codex fills in no variables here, but takes `cwd` as relative to the plugin.
            "mcpServers": {"memory": {"command": "./launch", "args": ["serve"], "cwd": "."}},
            "interface": {
                "displayName": claude["displayName"],
                "shortDescription": HEADLINE,
                "longDescription": claude["description"],
                "developerName": author["name"],
                "category": "Productivity",
                "capabilities": ["Read", "Write"],
                "websiteURL": REPOSITORY,
                "logo": "./icon.png",
            },
        },
        ".claude-plugin/marketplace.json": marketplace,
        ".cursor-plugin/marketplace.json": marketplace,
        ".github/plugin/marketplace.json": marketplace,
        ".agents/plugins/marketplace.json": {
            "name": NAME,
            "interface": {"displayName": claude["displayName"]},
            "plugins": [
                {
                    "name": NAME,
                    "source": {"source": "local", "path": "./plugin"},
                    "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
                    "category": "Productivity",
                }
            ],
        },
        "gemini-extension.json": {
            "name": NAME,
            "version": metadata["version"],
            "description": claude["description"],
            "mcpServers": {"memory": {"command": LAUNCHERS["gemini"], "args": ["serve"]}},
        },
        "server.json": {
            **_read(SERVER),
            "description": metadata["description"],
            "version": metadata["version"],
        },
    }


def registry_entry(extension: Path) -> dict[str, Any]:
    """Return the entry of a release in the MCP registry: `server.json`, and where its packages are."""
    stdio = {"type": "stdio"}
    packages: list[dict[str, Any]] = [
        {
            "registryType": "mcpb",
            "identifier": _asset(extension),  # names the version; `version` beside it has been refused
            "fileSha256": _sha256(extension),
            "transport": stdio,
        }
    ]
    if RELEASED:
        serve = [{"type": "positional", "value": "serve"}]
        packages.append(
            {
                "registryType": "pypi",
                "identifier": DISTRIBUTION,
                "version": project()["version"],
                "packageArguments": serve,
                "transport": stdio,
            }
        )
    return {**_read(SERVER), "packages": packages}


def templates(sdist: Path, commit: str) -> dict[str, str]:
    """Return the files of `deploy/catalogues` by their names, for the sdist and the commit of a release."""
    metadata = project()
    values = {
        "headline": HEADLINE,
        "description": metadata["description"],
        "repository": REPOSITORY,
        "license": metadata["license"],
        "sdist": _asset(sdist),
        "sdist_sha256": _sha256(sdist),
        "commit": commit,
    }
    return {path.name: _HOLE.sub(lambda hole: values[hole[1]], path.read_text(encoding="utf-8")) for path in TEMPLATES}


def files() -> dict[str, str]:
    """Return the text of each file that is made, by its path: the manifests, and the plugin's copy of the skill."""
    return {"plugin/skills/memory/SKILL.md": SKILL, **{name: _text(value) for name, value in manifests().items()}}


def write_release(folder: Path, commit: str) -> None:
    """Write the registry's entry and the filled templates beside the release's extension and sdist.

    Raises ValueError if the folder does not have exactly one of each.
    """
    [extension] = folder.rglob("*.mcpb")
    [sdist] = folder.rglob("*.tar.gz")
    added = {"server.json": _text(registry_entry(extension)), **templates(sdist, commit)}
    for name, text in added.items():
        (folder / name).write_text(text, encoding="utf-8")


def _hooks(client: str) -> dict[str, Any]:
    """Return the file of hooks of a client; empty if we have none for it."""
    found = hooks_of(client, ["LAUNCH"])
    if not found:
        return {}
    launcher = LAUNCHERS[client]  # quoted where a shell reads it
    text = json.dumps(found).replace('"LAUNCH"', f'"{launcher}"').replace("LAUNCH ", f'\\"{launcher}\\" ')
    return {**({"version": 1} if client in _VERSIONED else {}), "hooks": json.loads(text)}


def _text(manifest: Any) -> str:
    return json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"


def _asset(file: Path) -> str:
    return f"{REPOSITORY}/releases/download/v{project()['version']}/{file.name}"


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _read(path: Path) -> Mapping[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def main(arguments: list[str]) -> None:
    match arguments:
        case []:
            for name, text in files().items():
                path = ROOT / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        case ["--release", folder, commit]:
            write_release(Path(folder), commit)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
