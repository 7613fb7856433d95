"""Makes the desktop extension, one file that Claude Desktop installs with a click: `dist/mcp-memory-<version>.mcpb`.

`bundle/` has the hand-written part. The rest is filled in here: the version, the texts and the address from
`pyproject.toml`, the tools and prompts from the server itself, the pins from `constraints.txt`. The package is included
as a wheel, so nothing is built on the user's machine; its libraries are fetched by the host's `uv` when the extension
is installed. The real `mcpb` validates and packs.

    python -m scripts.make_bundle
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from mcp_memory import __version__
from mcp_memory.integrations.clients.programs import NAME
from mcp_memory.server.prompts import PROMPTS
from mcp_memory.server.tools import TOOLS
from scripts.install_peers import MCPB, install, node_environment

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "bundle"
STAGE = ROOT / "build" / "bundle"
TARGET = ROOT / "dist" / f"mcp-memory-{__version__}.mcpb"


def project() -> dict[str, Any]:
    """Return the table `[project]` of `pyproject.toml`, with the version."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {**table, "version": __version__}


def manifest() -> dict[str, Any]:
    """Return the extension's manifest: `bundle/manifest.json`, completed from other sources."""
    metadata = project()
    address = metadata["urls"]["Repository"]
    return {
        **json.loads((SOURCES / "manifest.json").read_text(encoding="utf-8")),
        "name": NAME,
        "version": metadata["version"],
        "description": metadata["description"],
        "author": {"name": metadata["authors"][0]["name"], "url": address},
        "repository": {"type": "git", "url": f"{address}.git"},
        "homepage": address,
        "keywords": metadata["keywords"],
        "license": metadata["license"],
        "tools": [
            {"name": tool.definition.name, "description": _first_sentence(tool.definition.description or "")}
            for tool in TOOLS
        ],
        "prompts": [
            {
                "name": prompt.name,
                "description": prompt.definition.description,
                "arguments": [prompt.argument],
                "text": f"{prompt.definition.description} {prompt.argument}: ${{arguments.{prompt.argument}}}",
            }
            for prompt in PROMPTS
        ],
        "prompts_generated": True,  # the server's own texts hold what is remembered
    }


def requirements(wheel: str) -> str:
    """Return the extension's `pyproject.toml`: the package from the file `wheel`, and the versions that are tested."""
    metadata = project()
    tested = [
        tuple(map(int, line.rpartition(" ")[2].split("."))) for line in metadata["classifiers"] if " :: 3." in line
    ]
    newest = max(tested)
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return "\n".join(
        [
            "[project]",
            'name = "mcp-memory-extension"',
            f'version = "{metadata["version"]}"',
            f'requires-python = "{metadata["requires-python"]},<{newest[0]}.{newest[1] + 1}"',
            f'dependencies = ["{metadata["name"]}"]',
            "",
            "[tool.uv]",
            "package = false",
            "constraint-dependencies = [",
            *(f'  "{pin}",' for pin in pins),
            "]",
            "",
            "[tool.uv.sources]",
            f'{metadata["name"]} = {{ path = "{wheel}" }}',
            "",
        ]
    )


def stage(folder: Path) -> None:
    """Recreate `folder` with the contents of the extension. Raises CalledProcessError if the wheel does not build."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    [wheel] = folder.glob("*.whl")
    (folder / "manifest.json").write_text(json.dumps(manifest(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "pyproject.toml").write_text(requirements(wheel.name), encoding="utf-8")
    for source in (SOURCES / "server.py", ROOT / "plugin" / "icon.png", ROOT / "LICENSE"):
        shutil.copyfile(source, folder / source.name)


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".") + "."


def main() -> None:
    stage(STAGE)
    install(MCPB)
    TARGET.parent.mkdir(exist_ok=True)
    for arguments in (["validate", str(STAGE / "manifest.json")], ["pack", str(STAGE), str(TARGET)]):
        subprocess.run([*MCPB.command, *arguments], env=node_environment(), check=True)
    print(f"{TARGET.relative_to(ROOT)}: {TARGET.stat().st_size / 2**20:.1f} MB")


if __name__ == "__main__":
    main()
