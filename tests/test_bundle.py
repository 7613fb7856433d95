"""The desktop extension as it is packed: it agrees with the package, and starts it."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

import pytest
from anyio import fail_after
from mcp import Client, StdioServerParameters

from mcp_memory import __version__
from mcp_memory.core.config import PREFIX, Settings
from mcp_memory.server.prompts import PROMPTS
from scripts.make_bundle import manifest, project, stage

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
SECRET = {name for name, field in Settings.model_fields.items() if not field.repr}


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that is packed."""
    folder = tmp_path_factory.mktemp("bundle")
    stage(folder)
    return folder


def filled(text: str, extension: Path, home: Path) -> str:
    """Fill the holes as a host does whose user has set nothing."""
    given = {f"user_config.{name}": option["default"] for name, option in manifest()["user_config"].items()}
    for name, value in {**given, "__dirname": str(extension), "HOME": str(home)}.items():
        text = text.replace(f"${{{name}}}", value)
    return text


# --- the extension ----------------------------------------------------------------------------------


def test_the_extension_is_a_manifest_a_start_and_the_wheel(extension: Path) -> None:
    wheel = f"memory_pyramid-{__version__}-py3-none-any.whl"
    files = {"LICENSE", "icon.png", "manifest.json", "pyproject.toml", "server.py", wheel}
    assert {path.name for path in extension.iterdir()} == files


def test_its_options_are_settings_that_the_server_is_given_and_may_stay_empty() -> None:
    said = manifest()
    options = said["user_config"]
    assert set(options) <= set(Settings.model_fields)
    assert said["server"]["mcp_config"]["env"] == {
        f"{PREFIX}{name.upper()}": f"${{user_config.{name}}}" for name in options
    }
    # Without a default some hosts hand the hole itself to the server.
    assert all("default" in option and not option["required"] for option in options.values())
    assert {name for name, option in options.items() if option.get("sensitive")} == SECRET & set(options)


def test_its_requirements_are_the_wheel_and_the_versions_that_are_tested(extension: Path) -> None:
    said = tomllib.loads((extension / "pyproject.toml").read_text(encoding="utf-8"))
    assert said["project"]["dependencies"] == list(said["tool"]["uv"]["sources"]) == ["memory-pyramid"]
    assert (extension / said["tool"]["uv"]["sources"]["memory-pyramid"]["path"]).is_file()
    assert said["project"]["version"] == __version__
    assert said["project"]["requires-python"] == f"{project()['requires-python']},<3.14"
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert said["tool"]["uv"]["constraint-dependencies"] == pins


@pytest.mark.parametrize("host", ["fills every hole", "leaves the holes of empty options"])
async def test_its_start_greets_and_has_the_tools_that_are_listed(host: str, extension: Path, tmp_path: Path) -> None:
    said = manifest()
    config = said["server"]["mcp_config"]
    given = config["env"]
    if host == "fills every hole":
        given = {name: filled(value, extension, tmp_path) for name, value in given.items()}
    # What `uv run` runs in the folder is this; that uv installs it is for test_bundles.py of the peers.
    start = [filled(word, extension, tmp_path) for word in config["args"][3:]]
    assert start == [said["server"]["entry_point"]]
    environ = {**given, "HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    server = StdioServerParameters(command=sys.executable, args=start, env=environ, cwd=str(extension))
    with fail_after(60):
        async with Client(server) as client:
            assert (client.server_info.name, client.server_info.version) == (said["name"], said["version"])
            assert [tool.name for tool in (await client.list_tools()).tools] == [tool["name"] for tool in said["tools"]]
            assert {prompt.name for prompt in (await client.list_prompts()).prompts} == {
                prompt.name for prompt in PROMPTS
            }
            await client.call_tool("remember", {"text": "Ada lives in Lisbon."})
    assert (tmp_path / ".mcp-memory" / "memory.db").is_file()
