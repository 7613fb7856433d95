"""What the catalogues of clients and servers need: each manifest is renewed, valid, and says what the package says."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from mcp_memory import __version__
from mcp_memory.core.distribution import DISTRIBUTION, RELEASED, REPOSITORY
from mcp_memory.integrations.clients.hook_entries import hooks_of
from mcp_memory.integrations.clients.programs import NAME, PLUGIN
from scripts.catalogues import HEADLINE, ROOT, files, manifests, write_release
from scripts.make_bundle import project

SCHEMAS = ROOT / "fixtures" / "catalogues"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
MANIFESTS = manifests()
KEBAB = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
SEMVER = re.compile(r"\d+\.\d+\.\d+")


def told(name: str) -> Any:
    return json.loads((ROOT / name).read_text(encoding="utf-8"))


def check(value: Any, schema: str) -> None:
    """Check a value by a schema that a catalogue publishes; `fixtures/catalogues/NOTICE` says which."""
    loaded = json.loads((SCHEMAS / f"{schema}.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft7Validator(loaded).validate(value)


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """The folder of a release: an extension, an sdist, and what catalogues need."""
    (tmp_path / "python").mkdir()
    (tmp_path / f"{NAME}-{__version__}.mcpb").write_bytes(b"extension")
    (tmp_path / "python" / f"memory_pyramid-{__version__}.tar.gz").write_bytes(b"sdist")
    write_release(tmp_path, COMMIT)
    return tmp_path


# --- manifests in the repository --------------------------------------------------------------------


@pytest.mark.parametrize(("name", "text"), files().items())
def test_the_file_is_the_one_that_is_made(name: str, text: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == text, "renew it: python -m scripts.catalogues"


def test_no_other_file_is_made_for_a_client() -> None:
    """A file that a client reads by default, in another client's form, would mislead it."""
    folders = ("plugin/hooks", "hooks", ".agents", ".claude-plugin", ".cursor-plugin", ".github/plugin")
    found = {path.relative_to(ROOT).as_posix() for folder in folders for path in (ROOT / folder).rglob("*.json")}
    assert found <= set(MANIFESTS)
    assert not any((ROOT / "plugin" / name).exists() for name in (".mcp.json", "mcp.json", "plugin.json", "hooks.json"))


@pytest.mark.parametrize("name", [name for name in MANIFESTS if name.endswith(("/plugin.json", "-extension.json"))])
def test_a_plugin_is_described_as_the_package_is(name: str) -> None:
    plugin = MANIFESTS[name]
    assert (plugin["name"], plugin["version"]) == (NAME, __version__)
    assert KEBAB.fullmatch(plugin["name"])
    assert SEMVER.fullmatch(plugin["version"])
    assert len(plugin["description"]) <= 1024
    if "license" in plugin:  # an extension of Gemini CLI has none
        metadata = project()
        assert [plugin[key] for key in ("license", "keywords", "repository")] == [
            metadata["license"],
            metadata["keywords"],
            REPOSITORY,
        ]


@pytest.mark.parametrize("name", [name for name in MANIFESTS if name.endswith("/plugin.json")])
def test_what_a_plugin_names_is_there(name: str) -> None:
    plugin, folder = MANIFESTS[name], ROOT / "plugin"
    named = [plugin.get(key) for key in ("hooks", "skills", "icon", "logo")] + [plugin.get("interface", {}).get("logo")]
    assert [path for path in named if path and not (folder / path).exists()] == []
    # Paths of components begin with ./ in Codex and Claude Code.
    assert all(path.startswith("./") for key in ("hooks", "skills") if (path := plugin.get(key)))


@pytest.mark.parametrize("name", [name for name in MANIFESTS if name.endswith("marketplace.json")])
def test_a_marketplace_lists_the_plugin_that_is_here(name: str) -> None:
    marketplace = MANIFESTS[name]
    [entry] = marketplace["plugins"]
    assert f"{entry['name']}@{marketplace['name']}" == PLUGIN
    source = entry["source"]
    path = source["path"] if isinstance(source, dict) else source
    assert path.startswith("./")
    assert (ROOT / path).resolve() == ROOT / "plugin"


@pytest.mark.parametrize(
    ("client", "file", "launcher"),
    [
        ("claude-code", "plugin/hooks/claude-code.json", "${CLAUDE_PLUGIN_ROOT}/launch"),
        ("codex", "plugin/hooks/codex.json", "${PLUGIN_ROOT}/launch"),
        ("gemini", "hooks/hooks.json", "${extensionPath}/plugin/launch"),
    ],
)
def test_the_hooks_are_those_that_the_package_answers(client: str, file: str, launcher: str) -> None:
    hooks = told(file)["hooks"]
    assert list(hooks) == list(hooks_of(client, [NAME]))
    for event, [group] in hooks.items():
        [hook] = group["hooks"]
        if client == "claude-code":  # no shell reads it
            assert [hook["command"], *hook["args"]] == [launcher, "hook", event]
        else:
            assert hook["command"] == f'"{launcher}" hook {event} --client {client}'


def test_a_client_that_runs_hooks_has_them_in_its_plugin() -> None:
    for client in ("copilot", "cursor"):
        plugin = MANIFESTS[f"plugin/{'.github/plugin' if client == 'copilot' else '.cursor-plugin'}/plugin.json"]
        assert ("hooks" in plugin) == bool(hooks_of(client, [NAME]))


# --- what each catalogue asks for -------------------------------------------------------------------


def test_cursor_takes_the_plugin_and_its_marketplace() -> None:
    check(MANIFESTS["plugin/.cursor-plugin/plugin.json"], "cursor_plugin")
    check(MANIFESTS[".cursor-plugin/marketplace.json"], "cursor_marketplace")


def test_codex_takes_the_plugin_and_its_marketplace() -> None:
    # https://developers.openai.com/codex/plugins/build and codex-rs/core-plugins/src of openai/codex
    plugin = MANIFESTS["plugin/.codex-plugin/plugin.json"]
    [server] = plugin["mcpServers"].values()
    assert (ROOT / "plugin" / server["cwd"] / server["command"]).is_file()
    assert {"displayName", "shortDescription", "longDescription", "developerName", "category"} <= set(
        plugin["interface"]
    )
    [entry] = MANIFESTS[".agents/plugins/marketplace.json"]["plugins"]
    assert entry["source"]["source"] == "local"
    assert entry["policy"]["installation"] in {"AVAILABLE", "INSTALLED_BY_DEFAULT", "NOT_AVAILABLE"}
    assert entry["policy"]["authentication"] in {"ON_INSTALL", "ON_USE"}


def test_copilot_takes_the_plugin_and_its_marketplace() -> None:
    # https://docs.github.com/copilot/reference/copilot-cli-reference/cli-plugin-reference
    known = {"name", "description", "version", "author", "homepage", "repository", "license", "keywords", "category"}
    known |= {"tags", "agents", "skills", "commands", "hooks", "mcpServers", "lspServers"}
    plugin = MANIFESTS["plugin/.github/plugin/plugin.json"]
    assert set(plugin) <= known
    assert len(plugin["name"]) <= 64
    marketplace = MANIFESTS[".github/plugin/marketplace.json"]
    assert {"name", "owner", "plugins"} <= set(marketplace) <= {"name", "owner", "plugins", "metadata"}
    assert set(marketplace["owner"]) <= {"name", "email"}
    assert set(marketplace["metadata"]) <= {"description", "version", "pluginRoot"}


def test_gemini_takes_the_extension() -> None:
    # https://geminicli.com/docs/extensions/reference
    extension = told("gemini-extension.json")
    assert set(extension) <= {"name", "version", "description", "mcpServers", "contextFileName", "settings"}
    [server] = extension["mcpServers"].values()
    assert "trust" not in server
    assert Path(server["command"].replace("${extensionPath}", str(ROOT))).is_file()


def test_glama_is_told_the_maintainers() -> None:
    # https://glama.ai/mcp/schemas/server.json: names at GitHub, and nothing else
    assert told("glama.json") == {
        "$schema": "https://glama.ai/mcp/schemas/server.json",
        "maintainers": [REPOSITORY.split("/")[-2]],
    }


def test_smithery_starts_the_server_of_the_image() -> None:
    # https://smithery.ai/docs/config/smithery.yaml
    start = yaml.safe_load((ROOT / "smithery.yaml").read_text(encoding="utf-8"))["startCommand"]
    assert (set(start), start["type"]) == ({"type", "configSchema", "commandFunction"}, "stdio")
    jsonschema.Draft7Validator.check_schema(start["configSchema"])
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    [command] = re.findall(r'command: "([^"]+)", args: \["serve"\]', start["commandFunction"])
    assert json.dumps([command]) in image


# --- what a release adds ----------------------------------------------------------------------------


def test_the_mcp_registry_takes_the_entry_of_the_repository_and_that_of_a_release(release: Path) -> None:
    for entry in (told("server.json"), json.loads((release / "server.json").read_text(encoding="utf-8"))):
        check(entry, "mcp_server")
        assert [entry[key] for key in ("description", "version", "websiteUrl")] == [
            project()["description"],
            __version__,
            REPOSITORY,
        ]
        owner, name = REPOSITORY.removeprefix("https://github.com/").split("/")
        assert entry["name"] == f"io.github.{owner}/{name}"
        assert f"<!-- mcp-name: {entry['name']} -->" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_entry_of_a_release_has_its_extension_and_the_package_once_its_name_is_ours(release: Path) -> None:
    assert "packages" not in told("server.json")
    extension, *packages = json.loads((release / "server.json").read_text(encoding="utf-8"))["packages"]
    file = release / f"{NAME}-{__version__}.mcpb"
    assert extension["identifier"] == f"{REPOSITORY}/releases/download/v{__version__}/{file.name}"
    assert extension["fileSha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert [package["identifier"] for package in packages] == ([DISTRIBUTION] if RELEASED else [])


def test_dockers_registry_takes_the_entry_of_a_release(release: Path) -> None:
    # cmd/validate of https://github.com/docker/mcp-registry
    entry = yaml.safe_load((release / "server.yaml").read_text(encoding="utf-8"))
    assert (entry["name"], entry["type"], entry["about"]["description"]) == (NAME, "server", project()["description"])
    assert re.fullmatch(r"[a-z0-9-]+", entry["name"])
    assert entry["source"] == {"project": REPOSITORY, "commit": COMMIT}
    words = entry["about"]["title"].split()
    assert words == [word.capitalize() for word in words if word not in {"MCP", "Server"}]
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    [volume] = entry["run"]["volumes"]
    assert f"VOLUME {volume.partition(':')[2]}\n" in image
    assert entry["run"]["command"] == ["serve"]


def test_the_formula_of_a_release_builds_its_sdist_with_the_tested_versions(release: Path) -> None:
    formula = (release / f"{NAME}.rb").read_text(encoding="utf-8")
    [sdist] = (release / "python").iterdir()
    stanzas = dict(re.findall(r'^  (desc|homepage|url|sha256|license) "(.*)"$', formula, re.MULTILINE))
    assert stanzas == {
        "desc": HEADLINE,
        "homepage": REPOSITORY,
        "url": f"{REPOSITORY}/releases/download/v{__version__}/{sdist.name}",
        "sha256": hashlib.sha256(sdist.read_bytes()).hexdigest(),
        "license": project()["license"],
    }
    assert len(HEADLINE) < 80
    assert "constraints.txt" in formula
    assert "{" not in formula.replace("#{bin}", "")


def test_a_release_without_its_extension_is_refused(tmp_path: Path) -> None:
    (tmp_path / "memory_pyramid.tar.gz").touch()
    with pytest.raises(ValueError):
        write_release(tmp_path, COMMIT)


def test_the_workflow_publishes_what_the_catalogues_need() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))["jobs"]
    assert jobs["registry"]["permissions"] == {"id-token": "write"}
    assert {"publish", "release"} == set(jobs["registry"]["needs"])
    steps = " ".join(step.get("run", "") for job in jobs.values() for step in job["steps"])
    assert "scripts.catalogues --release dist" in steps
    assert "mcp-publisher login github-oidc" in steps
